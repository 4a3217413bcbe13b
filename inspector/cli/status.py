"""`inspector status`: whether the service takes work, whose key this is, and how far the feed is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from inspector.cli import DONE, FAILED
from inspector.cli.inputs import Json
from inspector.cli.output import json_line, table
from inspector.cli.service import Data, Key, Url, connected

if TYPE_CHECKING:
    from inspector.client import Api


def show_status(url: Url = "", key: Key = "", data: Data = None, json: Json = False) -> None:
    """Whether the service takes work; exit code 1 where it does not."""
    with connected(url, key, data, role="owner") as api:
        told = _status(api)
    if json:
        json_line(told)
    else:
        table(("", ""), list(told.items()))
    raise typer.Exit(DONE if told["ready"] else FAILED)


def _status(api: Api) -> dict[str, Any]:
    from inspector.client import ApiError

    try:
        ready = api.get("/readyz") or {}
    except ApiError as error:
        return {"ready": False, "why": error.reason}
    told: dict[str, Any] = {"ready": bool(ready.get("ready", True)), "lacks": ", ".join([*ready.get("red", ()), *ready.get("amber", ())]) or None}
    who = api.me()
    told |= {"project": who.get("project"), "key": who.get("name"), "role": who.get("role")}
    if who.get("project"):
        page = api.snapshot(limit=1)
        told |= {"epoch": page["epoch"], "seq": page["seq"], "states": len(page["states"])}
    return told
