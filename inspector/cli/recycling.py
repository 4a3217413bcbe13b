"""`inspector runs recycled`: what was out and may be learnt from after all."""

from __future__ import annotations

from typing import Annotated

import typer

from inspector.cli.inputs import Json
from inspector.cli.output import json_line, table
from inspector.cli.service import Data, Key, Url, connected
from inspector.cli.spreadsheet import csv_lines

COLUMNS = ("id", "key", "group", "environment", "version", "task", "posted", "reward", "policy_version", "staleness", "action", "seq")


def recycled(
    run: str,
    max_age: Annotated[int | None, typer.Option("--max-age", min=0, help="Policy versions that may lie between.")] = None,
    csv: Annotated[bool, typer.Option("--csv", help="The list as CSV.")] = False,
    url: Url = "",
    key: Key = "",
    data: Data = None,
    json: Json = False,
) -> None:
    """What a replay buffer may take up again, with the reward to use."""
    with connected(url, key, data, role="owner") as api:
        found = list(api.recycled(run, max_age_steps=max_age))
    if csv:
        csv_lines(COLUMNS, found)
    elif json:
        for one in found:
            json_line(one)
    else:
        table(COLUMNS, [[one.get(column) for column in COLUMNS] for one in found])
