"""`inspector runs contamination`: what a run used of what is known to be bad."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from inspector.cli.inputs import Json
from inspector.cli.output import json_line, say, table
from inspector.cli.service import Data, Key, Url, connected
from inspector.cli.spreadsheet import csv_lines

UPDATES = (
    "step", "attempt", "policy_before", "policy_after", "checkpoint", "rows", "mass", "unknown",
    "bad_rows", "bad_trajectories", "bad_mass", "share", "inherited",
)  # fmt: skip
USES = ("step", "id", "key", "group", "environment", "version", "task", "weight", "reward", "action", "cause", "reward_override")


class What(StrEnum):
    """Which trajectories are taken to be bad."""

    STANDING = "standing"
    PROVED = "proved"
    EVERYTHING = "everything"


class Listed(StrEnum):
    """What is listed."""

    UPDATES = "updates"
    TRAJECTORIES = "trajectories"
    UNKNOWN = "unknown"


def contamination(
    run: str,
    what: Annotated[What | None, typer.Option("--what", help="Bad is what is excluded or overridden, what of it is proved, or everything posted.")] = None,
    cause: Annotated[str | None, typer.Option("--cause", help="Of the decision.")] = None,
    check: Annotated[str | None, typer.Option("--check", metavar="NAME@VERSION", help="That the decision rests on.")] = None,
    environment: Annotated[str | None, typer.Option("--environment", help="All that was posted in it, unless a cause or check is named.")] = None,
    version: Annotated[str | None, typer.Option("--version", help="Of the environment.")] = None,
    task: Annotated[str | None, typer.Option("--task", help="Of the environment.")] = None,
    listed: Annotated[Listed, typer.Option("--list", help="Updates; each use of a bad trajectory; or what was used and never posted.")] = Listed.UPDATES,
    csv: Annotated[bool, typer.Option("--csv", help="The list as CSV.")] = False,
    url: Url = "",
    key: Key = "",
    data: Data = None,
    json: Json = False,
) -> None:
    """Which updates used something bad or descend from one that did, and what share of their absolute reward it carried."""
    chosen: dict[str, Any] = {
        "what": what.value if what else None,
        "cause": cause,
        "check": check,
        "environment": environment,
        "version": version,
        "task": task,
    }
    with connected(url, key, data, role="owner") as api:
        summary = api.contamination(run, **chosen)["summary"] if listed is Listed.UPDATES else None
        if listed is Listed.UPDATES:
            found = list(api.contaminated_updates(run, **chosen))
        else:
            found = list(api.contaminated_uses(run, unknown=listed is Listed.UNKNOWN, **chosen))
    columns = UPDATES if listed is Listed.UPDATES else USES
    if csv:
        csv_lines(columns, found)
    elif json:
        for one in [*([{"summary": summary}] if summary else []), *found]:
            json_line(one)
    else:
        table(columns, [[one.get(column) for column in columns] for one in found])
        if summary:
            _tell(run, summary)


def _tell(run: str, told: dict[str, Any]) -> None:
    if told["first_step"] is None:
        say(f"{run}: none of its {told['updates']} updates used any of it")
        return
    share = told["bad_mass"] / told["mass"] if told["mass"] else 0.0
    say(
        f"{run}: {told['bad_rows']} of {told['rows']} rows, {share:.2%} of the absolute reward, in {told['direct_updates']} updates from step"
        f" {told['first_step']} on; {told['affected_updates']} of {told['updates']} updates used or inherited it;"
        f" version {told['last_clean']} was the last without; the newest is {'clean' if told['newest_is_clean'] else 'not'}"
    )
    for one in told["environments"]:
        used = f"{one['rows']} rows of {one['trajectories']} trajectories and {one['groups']} groups"
        say(f"  {one['environment']}@{one['version']}: {used}, in {one['updates']} updates")
    if told["unknown"]:
        say(f"  {told['unknown']} rows were never posted: --list unknown")
