import subprocess


def test_total():
    assert subprocess.run(["python", "/app/total.py"]).returncode == 0
