"""`inspector environments`: what their owners declare and register, and a person's quarantine and release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from inspector.cli import registering
from inspector.cli.inputs import Json, environment_version
from inspector.cli.output import json_line, say, table
from inspector.cli.service import Data, Key, Url, connected
from inspector.task import Declaration, NamedDeclaration, State

if TYPE_CHECKING:
    from inspector.client import Api

app = typer.Typer(help="Environments: declarations, packages and states.", no_args_is_help=True)
app.command("register")(registering.register)

Place = Annotated[str, typer.Argument(metavar="TEAM/NAME@VERSION")]
Task = Annotated[str | None, typer.Option("--task", help="One task of it alone.")]
Note = Annotated[str, typer.Option("--note", help="Why; the owner and every trainer may read it.")]
Weight = Annotated[float | None, typer.Option("--sampling-weight", min=0, max=1, help="With probation: how much of it is used.")]


@app.command("list")
def list_environments(url: Url = "", key: Key = "", data: Data = None, json: Json = False) -> None:
    """The environment versions that this project posted or declared."""
    with connected(url, key, data, role="owner") as api:
        found = list(api.environments())
    if json:
        for one in found:
            json_line(one)
    else:
        columns = ("environment", "version", "state", "sampling_weight", "declared")
        table(columns, [[one.get(column) for column in columns] for one in found])


@app.command("declare")
def declare(
    files: Annotated[list[Path], typer.Argument(metavar="FILES…", help="YAML or JSON declarations.")],
    url: Url = "",
    key: Key = "",
    data: Data = None,
    json: Json = False,
) -> None:
    """Tell the service what environments promise: reward range, weights, protected paths, limits."""
    from inspector.local.declared import read_file

    declarations = [one for path in files for one in read_file(path)]  # all of them first: half of a wrong file is not sent
    with connected(url, key, data, role="owner") as api:
        for one in declarations:
            send(api, one)
            told = {"environment": one.id, "version": one.version, "tasks": sorted(one.tasks)}
            if json:
                json_line(told)
            else:
                say(f"declared {one.id} {one.version}" + (f" and {len(one.tasks)} of its tasks" if one.tasks else ""))


def send(api: Api, one: NamedDeclaration) -> None:
    """An environment version's declaration, and those of its tasks."""
    api.declare(one.id, one.version, _written({name: getattr(one, name) for name in Declaration.__struct_fields__}))
    for task, own in one.tasks.items():
        api.declare(one.id, one.version, _written(msgspec.structs.asdict(own)), task=task)


def _written(fields: dict[str, Any]) -> dict[str, Any]:
    """Without what is not declared."""
    built: dict[str, Any] = msgspec.to_builtins(fields)
    return {name: _said(value) for name, value in built.items() if value is not None and _said(value) != {}}


def _said(value: Any) -> Any:
    return {name: inner for name, inner in value.items() if inner is not None} if isinstance(value, dict) else value


@app.command("quarantine")
def quarantine(place: Place, note: Note, task: Task = None, url: Url = "", key: Key = "", data: Data = None, json: Json = False) -> None:
    """Take it out of every training run, until a person releases it."""
    _set_state(place, State.QUARANTINED, note, task, None, (url, key, data), json=json)


@app.command("release")
def release(
    place: Place,
    note: Note,
    task: Task = None,
    probation: Annotated[bool, typer.Option("--probation", help="At a reduced weight first.")] = False,
    sampling_weight: Weight = None,
    url: Url = "",
    key: Key = "",
    data: Data = None,
    json: Json = False,
) -> None:
    """Let training runs use it again."""
    if sampling_weight is not None and not probation:
        raise typer.BadParameter("only goes with --probation", param_hint="--sampling-weight")
    _set_state(place, State.PROBATION if probation else State.ACTIVE, note, task, sampling_weight, (url, key, data), json=json)


def _set_state(place: str, state: State, note: str, task: str | None, weight: float | None, where: tuple[str, str, Path | None], *, json: bool) -> None:
    environment, version = environment_version(place)
    with connected(*where, role="owner") as api:
        done = api.set_state(environment, version, state.value, note=note, task=task, sampling_weight=weight)
    if json:
        json_line(done)
    else:
        alone = "" if done.get("for_all", True) else ", for this project alone"
        say(f"{place}{f' task {task}' if task else ''} is {done.get('state', state.value)}{alone}")
