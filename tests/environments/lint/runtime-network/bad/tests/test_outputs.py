import requests


def test_total(total):
    assert total == requests.get("https://example.org/total", timeout=5).json()
