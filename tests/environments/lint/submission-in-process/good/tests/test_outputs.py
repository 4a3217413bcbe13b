import subprocess
import sys


def test_total():
    said = subprocess.run([sys.executable, "/app/totals.py", "40", "2"], capture_output=True, text=True, timeout=10)
    assert int(said.stdout) == 42
