"""Lines of the lists of environment versions, of their tasks, and of what changed between two versions."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from urllib.parse import urlencode

from dashboard.shapes import Cell, Chip, ListRow
from dashboard.wording import outcomes
from dashboard.wording.changes import Change, tone
from dashboard.wording.values import Json, ago, environment, standing
from inspector.showable import showable


def parameters(line: Json) -> dict[str, str]:
    """Of the address of the page of a version. Not `environment`, which the address of triage has: a page is not given what another is bound to."""
    return {"name": line["environment"], "version": line["version"]}


def row(line: Json, newest: Json | None, now: datetime | None = None) -> ListRow:
    """A version: its state, what its tasks came to, and the newest probe."""
    owned = "owned here" if line["owner"] else "declared" if line["declared"] else "not declared"
    told = Cell(chips=outcomes.counted(line["counts"]), note=outcomes.probed(line["probed"]))
    return ListRow(
        key=place(line),
        cells=[Cell(standing(line), tone=outcomes.STATES.get(line["state"], "")), Cell(environment(line), owned), told, _probed(line, newest, now)],
        address=f"/environment?{urlencode(parameters(line))}",
    )


def place(line: Json) -> str:
    """What a version is called by; not shown."""
    return f"{line['environment']}@{line['version']}"


def _probed(line: Json, newest: Json | None, now: datetime | None) -> Cell:
    if newest is not None:
        going = newest["state"] in outcomes.GOES_ON
        return Cell(f"{newest['state']}, {outcomes.done(newest)}" if going else newest["state"], outcomes.when(newest, now))
    if line["probed_at"]:
        return Cell("probed", ago(line["probed_at"], now))
    return Cell("never", tone="none")


def task(line: Json, now: datetime | None = None) -> ListRow:
    """A task with what was last said of it."""
    return ListRow(line["task"], [Cell(showable(line["task"])), Cell(chips=outcomes.chips(line["outcomes"])), Cell(note=ago(line["probed_at"], now))])


def change(change: Change) -> ListRow:
    """A task of two versions."""
    return ListRow(change.task, [Cell(change.kind, tone=tone(change.kind)), Cell(showable(change.task)), _side(change.before), _side(change.now)])


def _side(found: Collection[str] | None) -> Cell:
    return Cell("—", tone="none") if found is None else Cell(chips=outcomes.chips(found))


def title(line: Json, state: Json, card: Json) -> Cell:
    """What stands above the tasks of a version."""
    here = Chip(standing(state), outcomes.STATES.get(state["state"], ""))
    return Cell(environment(line), outcomes.probed(card["probed"]), chips=[here, *outcomes.counted(card["counts"])])
