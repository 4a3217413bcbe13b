"""`inspector keys`: who may talk to the service."""

from __future__ import annotations

from typing import Annotated

import typer

from inspector.cli.inputs import Json
from inspector.cli.output import json_line, say, table, warn
from inspector.cli.service import Data, Key, Url, connected

app = typer.Typer(help="The project's API keys.", no_args_is_help=True)


@app.command("list")
def list_keys(url: Url = "", key: Key = "", data: Data = None, json: Json = False) -> None:
    """All keys, without their secrets."""
    with connected(url, key, data, role="owner") as api:
        found = api.keys()["keys"]
    if json:
        for one in found:
            json_line(one)
    else:
        columns = ("id", "name", "role", "prefix", "created_at", "expires_at", "revoked_at")
        table(columns, [[one.get(column) for column in columns] for one in found])


@app.command("add")
def add_key(
    name: Annotated[str, typer.Argument(help="Who will use it.")],
    role: Annotated[str, typer.Option("--role", help="trainer, reviewer or owner.")] = "trainer",
    expires_in_days: Annotated[int | None, typer.Option("--expires-in-days", min=1, max=3650)] = None,
    url: Url = "",
    key: Key = "",
    data: Data = None,
    json: Json = False,
) -> None:
    """Make a key. It is shown this once."""
    with connected(url, key, data, role="owner") as api:
        made = api.create_key(name, role, expires_in_days=expires_in_days)
    if json:
        json_line(made)
        return
    warn(f"key {made['id']} of role {made['role']}; it is not shown again")
    say(made["key"])


@app.command("revoke")
def revoke_key(key_id: Annotated[str, typer.Argument(metavar="ID")], url: Url = "", key: Key = "", data: Data = None, json: Json = False) -> None:
    """End a key; it is refused within 5 seconds."""
    with connected(url, key, data, role="owner") as api:
        api.revoke_key(key_id)
    if json:
        json_line({"id": key_id, "revoked": True})
    else:
        say(f"key {key_id} is revoked")
