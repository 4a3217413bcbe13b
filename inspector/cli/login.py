"""`inspector login`: an address that opens the dashboard once."""

from __future__ import annotations

from inspector.cli.inputs import Json
from inspector.cli.output import json_line, say, warn
from inspector.cli.service import Data, Key, Url, connected


def offer_login(url: Url = "", key: Key = "", data: Data = None, json: Json = False) -> None:
    """Print an address that signs a person in to the dashboard, once and within minutes, with the authority of this key."""
    with connected(url, key, data, role="owner") as api:
        offered = api.post("/v1/logins")
    if json:
        json_line(offered)
        return
    warn(f"it works once, until {offered['expires_at']}")
    say(offered["address"])
