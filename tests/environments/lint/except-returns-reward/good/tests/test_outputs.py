def score(path):
    try:
        return float(int(path.read_text()) == 42)
    except ValueError:
        return 0.0
