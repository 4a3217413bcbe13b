"""`inspector probes`: probes that the service makes of registered environment versions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inspector.cli import FAILED
from inspector.cli.inputs import Json, environment_version
from inspector.cli.output import json_line, progress, say, table
from inspector.cli.service import Data, Key, Url, connected

if TYPE_CHECKING:
    from inspector.client import Api

app = typer.Typer(help="Probes of registered environment versions, made by the service.", no_args_is_help=True)
POLL_S = 0.5
OVER = ("done", "cancelled", "failed")


class Depth(StrEnum):
    """How much is tried."""

    QUICK = "quick"
    FULL = "full"


class Priority(StrEnum):
    """How soon."""

    LIVE = "live"
    PROBE = "probe"
    BACKFILL = "backfill"


Place = Annotated[str, typer.Argument(metavar="TEAM/NAME@VERSION")]
Id = Annotated[str, typer.Argument(metavar="ID", help="Of the probe.")]


@app.command("start")
def start(
    place: Place,
    depth: Annotated[Depth, typer.Option("--depth", help="How much is tried, and how often.")] = Depth.QUICK,
    task: Annotated[list[str] | None, typer.Option("--task", metavar="ID", help="Only this task; repeatable.")] = None,
    cpu_s: Annotated[float | None, typer.Option("--cpu-s", min=0.1, help="Seconds of CPU that all tasks may take; the rest is not assessed.")] = None,
    wall_s: Annotated[float | None, typer.Option("--wall-s", min=0.1, help="The same, on the clock.")] = None,
    priority: Annotated[Priority, typer.Option("--priority", help="What is more urgent goes first; what waits grows urgent.")] = Priority.PROBE,
    wait: Annotated[bool, typer.Option("--wait", help="Until it is over; exits 1 where it failed.")] = False,
    url: Url = "",
    key: Key = "",
    data: Data = None,
    json: Json = False,
) -> None:
    """Ask for a probe of a version that this project registered."""
    environment, version = environment_version(place)
    wanted: dict[str, Any] = {"depth": depth.value, "priority": priority.value, "budget": {"cpu_s": cpu_s, "wall_s": wall_s}, "tasks": task or None}
    with connected(url, key, data, role="owner") as api:
        probe = api.start_probe(environment, version, wanted)
        if wait:
            probe = _awaited(api, probe)
    if json:
        json_line(probe)
    else:
        _say(probe)
    raise typer.Exit(FAILED if probe["state"] == "failed" else 0)


def _awaited(api: Api, probe: dict[str, Any]) -> dict[str, Any]:
    with progress() as step:
        while probe["state"] not in OVER:
            step(f"{probe['environment']} {probe['version']}", probe["done"], probe["total"])
            time.sleep(POLL_S)
            probe = api.probe(probe["id"])
    return probe


@app.command("show")
def show(probe_id: Id, url: Url = "", key: Key = "", data: Data = None, json: Json = False) -> None:
    """How far a probe is, and what it says of each task; with --json one line a task, and a last one for the probe."""
    with connected(url, key, data, role="owner") as api:
        probe, tasks = api.probe(probe_id), list(_tasks(api, probe_id))
    if json:
        for one in (*tasks, probe):
            json_line(one)
        return
    _say(probe)
    table(("task", "state", "outcomes", "why"), [(one["task"], one["state"], ", ".join(one["outcomes"] or ()), _why(one["report"])) for one in tasks])


def _tasks(api: Api, probe_id: str) -> Iterator[dict[str, Any]]:
    after: str | None = None
    while True:
        page = api.probed_tasks(probe_id, after=after)
        yield from page["tasks"]
        if (after := page["next"]) is None:
            return


def _why(report: dict[str, Any] | None) -> str:
    if report is None:
        return ""
    claims = [one["claim"] for one in report["evidence"]]
    return "\n".join(claims or (report["notes"][:1] if report["outcomes"] != ["sound"] else ()))


@app.command("cancel")
def cancel(probe_id: Id, url: Url = "", key: Key = "", data: Data = None, json: Json = False) -> None:
    """End a probe before its next task. What was found stands."""
    with connected(url, key, data, role="owner") as api:
        probe = api.cancel_probe(probe_id)
    if json:
        json_line(probe)
    else:
        _say(probe)


@app.command("list")
def list_probes(url: Url = "", key: Key = "", data: Data = None, json: Json = False) -> None:
    """The probes that this project asked for, newest first."""
    with connected(url, key, data, role="owner") as api:
        found = list(api.probes())
    if json:
        for one in found:
            json_line(one)
    else:
        columns = ("id", "environment", "version", "state", "priority", "done", "total", "asked_at", "ended_at")
        table(columns, [[one.get(column) for column in columns] for one in found])


def _say(probe: dict[str, Any]) -> None:
    total = "?" if probe["total"] is None else probe["total"]
    say(f"probe {probe['id']} of {probe['environment']} {probe['version']} is {probe['state']}: {probe['done']} of {total} tasks")
    if probe["outcomes"]:
        say(", ".join(f"{count} {outcome}" for outcome, count in probe["outcomes"].items()))
    say(f"took {probe['spent']['cpu_s']:.1f} s of CPU and {probe['spent']['wall_s']:.1f} s on the clock")
    for line in probe["note"].splitlines():
        say(f"note: {line}")
