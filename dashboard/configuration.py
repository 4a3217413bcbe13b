"""Where the API is and under which names this server is reached, from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
ANY = frozenset({"0.0.0.0", "::", ""})  # noqa: S104  # what is listened on, not a name that anyone calls


class Configuration(NamedTuple):
    """Of this process."""

    api_url: str
    hosts: frozenset[str]  # names without port
    cookie: str  # cookies know no ports: two installations on one machine need two names


def read(environ: Mapping[str, str] = os.environ) -> Configuration:
    """`INSPECTOR_API_URL`, `INSPECTOR_HOST`, `INSPECTOR_DASHBOARD_PORT`, and further names in `INSPECTOR_DASHBOARD_HOSTS` (comma-separated)."""
    named = {environ.get("INSPECTOR_HOST", ""), *environ.get("INSPECTOR_DASHBOARD_HOSTS", "").split(",")}
    hosts = LOOPBACK | ({name.strip().strip("[]").lower() for name in named} - ANY)
    port = environ.get("INSPECTOR_DASHBOARD_PORT", "8643")
    return Configuration(environ.get("INSPECTOR_API_URL", "http://127.0.0.1:8642"), hosts, f"inspector_session_{port}")
