import requests


def test_total(total):
    assert total == requests.get("http://localhost:8000/total", timeout=5).json()
