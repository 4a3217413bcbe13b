import subprocess


def test_total():
    assert subprocess.run(["python", "/app/total.py"], timeout=10).returncode == 0
