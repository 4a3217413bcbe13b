"""`inspector runs`: training runs, and whether their trainers obey."""

from __future__ import annotations

from typing import Annotated

import typer

from inspector.cli.contamination import contamination
from inspector.cli.inputs import Json
from inspector.cli.output import json_line, say, table
from inspector.cli.recycling import recycled
from inspector.cli.service import Data, Key, Url, connected
from inspector.verdict import Mode

app = typer.Typer(help="Training runs.", no_args_is_help=True)
app.command("contamination")(contamination)
app.command("recycled")(recycled)


@app.command("list")
def list_runs(url: Url = "", key: Key = "", data: Data = None, json: Json = False) -> None:
    """All runs of the project."""
    with connected(url, key, data, role="owner") as api:
        found = list(api.pages("/v1/runs", "runs"))
    if json:
        for one in found:
            json_line(one)
    else:
        table(
            ("run", "trainer", "mode", "created_at", "stopped checks"),
            [(r["run"], r.get("trainer"), r["mode"], r.get("created_at"), ", ".join(r.get("stopped", ()))) for r in found],
        )


@app.command("mode")
def set_mode(run: str, mode: Annotated[Mode, typer.Argument()], url: Url = "", key: Key = "", data: Data = None, json: Json = False) -> None:
    """Observe: everything is decided and shown, nothing changes. Enforce: the trainer's client acts on it."""
    with connected(url, key, data, role="owner") as api:
        done = api.set_mode(run, mode.value)
    if json:
        json_line(done)
    else:
        say(f"run {run} is in {mode.value} mode")
