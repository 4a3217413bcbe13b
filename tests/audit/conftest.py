"""One project on a real Postgres, with everything between the door and the feed, in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine

from inspector import catalog, policy
from inspector.audit import Auditor, Pace, selected
from inspector.audit.stops import Watch
from inspector.check import Check
from inspector.intake import Intake, Posting, Project, Receipt
from inspector.settings import Limits
from inspector.store import decisions, environments, projects, runs, selections, trajectories, verdicts
from inspector.store.segments import SegmentReader, SegmentWriter
from inspector.store.session import connect, transaction
from inspector.store.verdicts import Stored
from inspector.task import Declaration
from inspector.testing import envelope
from inspector.verdict import Decision, Mode


class Bell:
    """Counts how often it was rung."""

    rung = 0

    def ring(self) -> bool:
        self.rung += 1
        return True


@dataclass
class Desk:
    """What a test posts to and asks."""

    engine: Engine
    root: Path
    checks: Sequence[Check]
    project: Project
    intake: Intake
    woken: list[set[int]] = field(default_factory=list)
    watched: list[Watch] = field(default_factory=list)

    def auditor(self, pace: Pace | None = None) -> Auditor:
        installed = catalog.Catalog({check.name: check for check in self.checks})
        return Auditor(
            self.engine,
            SegmentReader(self.root),
            installed,
            policy.load(None),
            pace or Pace(),
            wake=self.woken.append,
            watch=self.watched.append,
            alarms=False,
        )

    def post(self, *posted: Mapping[str, Any]) -> list[Receipt]:
        return self.intake.accept(self.project, Posting([json.dumps(one).encode() for one in posted], {}, None))

    def audit(self) -> int:
        return self.auditor().drain()

    def key(self, id_: str) -> UUID:
        with transaction(self.engine) as session:
            return trajectories.key_of(session, self.project.id, id_)

    def stored(self, id_: str) -> Stored:
        key = self.key(id_)
        with transaction(self.engine) as session:
            return verdicts.stored(session, self.project.id, [key])[key]

    def feed(self, after: int = 0) -> list[Decision]:
        with transaction(self.engine) as session:
            return decisions.page(session, self.project.id, None, after, 10_000)[1]

    def declare(self, declaration: Declaration, environment: str = "acme/terminal", version: str = "1") -> None:
        with transaction(self.engine) as session:
            name = environments.EnvironmentName(environment, version)
            environments.declare(session, self.project.id, environments.ensure(session, self.project.id, [name])[name], declaration)

    def enforce(self, run: str) -> None:
        with transaction(self.engine) as session:
            runs.set_mode(session, self.project.id, run, Mode.ENFORCE)


OpenDesk = Callable[..., Desk]


@pytest.fixture
def open_desk(database: str, tmp_path: Path) -> Iterator[OpenDesk]:
    """A desk with these checks; without any, the installed ones."""
    engine = connect(database)
    writers = []

    def opened(*checks: Check, name: str = "alpha") -> Desk:
        chosen = checks or tuple(catalog.load().select())
        with transaction(engine) as session:
            uuid = projects.create(session, name)
            project = Project(projects.by_name(session, name)[0], uuid)
            selection = selections.ensure(session, selected(chosen))
        writer = SegmentWriter(tmp_path / "segments", max_bytes=1 << 28)
        writers.append(writer)
        return Desk(engine, tmp_path / "segments", chosen, project, Intake(engine, writer, Bell(), selection, Limits()))

    yield opened
    for writer in writers:
        writer.close()
    engine.dispose()


@pytest.fixture
def desk(open_desk: OpenDesk) -> Desk:
    return open_desk()


def episode(id_: str, **fields: Any) -> dict[str, Any]:
    """A sound envelope with steps of its own, so that no two are twins by accident."""
    said = {"step_id": 1, "source": "agent", "message": f"I did the work of {fields.pop('says', id_)}."}
    made = {
        "environment": {"id": "acme/terminal", "version": "1"},
        "task": {"id": "fix-nginx"},
        "reward": 1.0,
        "verifier": {"exit_code": 0, "tests": {"collected": 3, "passed": 3, "failed": 0}},
        "trajectory": {"schema_version": "ATIF-v1.8", "agent": {"name": "terminus", "version": "2"}, "steps": [said]},
    }
    return envelope(**{"run": None, "group": None, **made, "id": id_, **fields})


FAILED = {"exit_code": 1, "tests": {"collected": 3, "passed": 2, "failed": 1}}
