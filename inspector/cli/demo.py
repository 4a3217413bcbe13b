"""`inspector demo`: the whole service, the bundled trajectories, and what must be said of them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli import DONE, FAILED
from inspector.cli.environments import send
from inspector.cli.inputs import Json
from inspector.cli.output import Step, json_line, progress, say, table, warn
from inspector.cli.posting import posted
from inspector.settings import Settings
from inspector.verdict import Outcome

if TYPE_CHECKING:
    from inspector.client import Api
    from inspector.demo.comparison import Compared, Seen

PAUSE_S = 0.5
BODY = 500  # ordinary episodes that are posted together
TRIAL, TRIALS = "tally-trial", 400
NEEDY = {"builtin/unlike_its_environment"}  # checks that need a model of what is ordinary
LEARN_EVERY_S = 1.0
SETTLE_S = 3.0  # after the last verdict: what was judged with too little knowledge is judged once more

Data = Annotated[Path | None, typer.Option("--data", metavar="DIR", help="Serve this folder, and keep it; else a temporary one.")]
Patience = Annotated[float, typer.Option("--patience", min=1, help="Seconds to wait for all verdicts.")]


def run_demo(data: Data = None, patience: Patience = 120.0, json: Json = False) -> None:
    """Start the service, post the bundled trajectories, and compare every verdict with what it must be.

    Exit code 0 only when every verdict, action and cause is as expected.
    """
    from inspector.demo.comparison import compare, idle

    with _folder(data) as path, progress() as step:
        seen = _seen(path, patience, step)
    rows, without_findings = compare(seen), idle(seen.values())
    if json:
        for row in rows:
            json_line({"id": row.id, "fault": row.fault or None, "expected": _told(row.expected), "seen": _told(row.seen)})
    else:
        _print(rows)
    for check in without_findings:
        warn(f"the demo is to show {check}, which found nothing")
    raise typer.Exit(FAILED if without_findings or any(row.fault for row in rows) else DONE)


@contextmanager
def _folder(data: Path | None) -> Iterator[Path]:
    if data is not None:
        yield data
        return
    with tempfile.TemporaryDirectory(prefix="inspector-demo-") as path:
        yield Path(path)


def _seen(path: Path, patience_s: float, step: Step) -> dict[str, Seen]:
    from inspector.client import Api
    from inspector.demo.ordinary import COUNT
    from inspector.embedded import Stack  # here: it needs the extra `server`

    began = time.monotonic()
    with Stack(path, parts={"postgres", "redis", "migrations", "keys", "api", "worker", "beat"}, settings=Settings(learn_every_s=LEARN_EVERY_S)) as stack:
        warn(f"the service is up on {stack.api_url} after {time.monotonic() - began:.1f} s")
        began = time.monotonic()
        with Api(stack.api_url, stack.keys["owner"]) as owner, Api(stack.api_url, stack.keys["trainer"]) as trainer:
            seen = judged(owner, trainer, patience_s, step)
        warn(f"{COUNT} ordinary trajectories learnt from, {len(seen)} more posted and judged, in {time.monotonic() - began:.1f} s")
        return seen


def judged(owner: Api, trainer: Api, patience_s: float, step: Step) -> dict[str, Seen]:
    """What a running service says of the bundled trajectories, once nothing changes any more."""
    from inspector.demo.comparison import folder
    from inspector.local.declared import read_file

    for one in read_file(folder() / "declarations.yaml"):
        send(owner, one)
    _teach(owner, trainer, patience_s, step)
    return _settled(owner, _post(trainer, step), patience_s, step)


def _teach(owner: Api, trainer: Api, patience_s: float, step: Step) -> None:
    """Post ordinary episodes, and one more from time to time, until the service has learnt from them."""
    from inspector.demo.ordinary import ordinary

    lines = list(ordinary())
    for at in range(0, len(lines), BODY):
        list(trainer.post_lines(lines[at : at + BODY]))
        step("ordinary", min(at + BODY, len(lines)), len(lines))
    end = time.monotonic() + patience_s
    for number, line in enumerate(ordinary(TRIALS, seed=TRIALS, name=TRIAL)):
        list(trainer.post_lines([line]))
        if _knows(owner, f"{TRIAL}-{number:05}", end) or time.monotonic() > end:
            break
        time.sleep(PAUSE_S)


def _knows(owner: Api, id_: str, end: float) -> bool:
    """Whether the checks that need to know what is ordinary could judge this one."""
    outcomes = {Outcome.PENDING.word}
    while Outcome.PENDING.word in outcomes and time.monotonic() < end:
        time.sleep(PAUSE_S / 5)
        coverage = owner.trajectory_by_id(id_)["coverage"]
        outcomes = {coverage[check]["outcome"] for check in NEEDY if check in coverage}
    return not outcomes & {Outcome.PENDING.word, Outcome.NOT_ASSESSED.word}


def _post(trainer: Api, step: Step) -> list[str]:
    from inspector.client import ApiError
    from inspector.demo.comparison import folder
    from inspector.formats import Imported, Refused
    from inspector.local.sources import Sources

    found = list(Sources((folder() / "trajectories",)).read())
    if refused := [one for one in found if isinstance(one, Refused)]:
        raise ApiError(0, f"{refused[0].source}: {refused[0].reason}")
    receipts = posted(trainer, [one for one in found if isinstance(one, Imported)], wait=0.0, patience_s=30.0)
    step("posted", len(receipts), len(receipts))
    return [str(receipt["id"]) for receipt in receipts]


def _settled(owner: Api, ids: Sequence[str], patience_s: float, step: Step) -> dict[str, Seen]:
    """Groups and twins make some verdicts change once more, so they must have stood for a while."""
    end, since = time.monotonic() + patience_s, time.monotonic()
    seen: dict[str, Seen] = {}
    while time.monotonic() < end:
        before, seen = seen, _look(owner, ids)
        if seen != before:
            since = time.monotonic()
        step("judged", len(seen), len(ids))
        if len(seen) == len(ids) and time.monotonic() - since > SETTLE_S:
            break
        time.sleep(PAUSE_S)
    return _with_checks(owner, seen)


def _look(owner: Api, ids: Sequence[str]) -> dict[str, Seen]:
    from inspector.demo.comparison import Seen

    rows = {row["id"]: row for row in owner.trajectories(most=len(ids)) if row["verdict"] != "pending"}
    return {id_: Seen(row["verdict"], row["action"], row.get("cause")) for id_ in ids if (row := rows.get(id_))}


def _with_checks(owner: Api, seen: dict[str, Seen]) -> dict[str, Seen]:
    return {id_: _with_its_checks(owner, id_, one) for id_, one in seen.items()}


def _with_its_checks(owner: Api, id_: str, one: Seen) -> Seen:
    return one._replace(checks=frozenset(finding["check"] for finding in owner.trajectory_by_id(id_)["findings"]))


# --- printing --------------------------------------------------------------------------------------------------------


def _print(rows: Sequence[Compared]) -> None:
    table(("", "trajectory", "expected", "seen", "found by"), [_row(row) for row in rows])
    wrong = sum(bool(row.fault) for row in rows)
    say("")
    say(f"{len(rows)} trajectories, every one as expected" if not wrong else f"{wrong} of {len(rows)} are not as expected")


def _row(row: Compared) -> tuple[object, ...]:
    found = "\n".join(sorted(row.seen.checks)) if row.seen else ""
    return ("differs: " + row.fault if row.fault else "ok"), row.id, _said(row.expected), _said(row.seen), found


def _said(one: Seen | None) -> str:
    return f"{one.verdict} {one.action} {one.cause or ''}".rstrip() if one else "-"


def _told(one: Seen | None) -> dict[str, object] | None:
    return None if one is None else {**one._asdict(), "checks": sorted(one.checks)}
