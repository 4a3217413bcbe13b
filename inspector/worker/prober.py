"""One sandbox worker's probes: work is claimed over HTTP, done in boxes, and reported; it knows no database and no store."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

import msgspec
import structlog

from inspector.assignments import MOST_HINTS, MOST_TASKS, Assignment, Listing, ReplayReport, WorkReport
from inspector.client import Api, ApiError
from inspector.egress import Egress
from inspector.environments.lint import lint
from inspector.environments.protocol import Environment, Kind, TaskUnderTest, Unreadable
from inspector.packing import PACKAGE_BYTES
from inspector.probe import Depth, probe
from inspector.probe.words import Hint, TaskReport
from inspector.reports.encodable import all_encodable
from inspector.sandbox.protocol import Backend, Broken, Refused
from inspector.trajectory import Identifier
from inspector.worker.regrading import regraded
from inspector.worker.shelf import Shelf, command

log = structlog.get_logger()
CONFLICT, BUSY = 409, 429
PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0)  # between attempts to report
REPORT_BYTES = 4 << 20
PUBLIC = Egress()  # what may be called where the operator says nothing
PROOF_CHARS = 20_000  # of a report that would be larger


class Prober:
    """What one worker process needs to probe."""

    def __init__(self, api: Api, backend: Backend, room: Path, egress: Egress = PUBLIC) -> None:
        self._api, self._backend = api, backend
        self._shelf = Shelf(room, backend, self._fetch, egress)

    def drain(self, for_s: float) -> bool:
        """Work until nothing is left to claim, and begin nothing after `for_s`; whether there may be more."""
        end = time.monotonic() + for_s
        while time.monotonic() < end:
            assignment = self._claim()
            if assignment is None:
                return False
            with self._renewed(assignment):
                try:
                    self._report(assignment, self._said(assignment))
                except ApiError as error:  # its lease runs out, and it is claimed again
                    log.warning("no package could be fetched", work=assignment.work, reason=str(error))
                    return False
        return True

    # --- the service ---------------------------------------------------------------------------------------------------

    def _claim(self) -> Assignment | None:
        try:
            claimed = self._api.post("/v1/probe-work")
        except ApiError as error:
            log.warning("no work could be claimed", reason=str(error))
            return None
        return None if claimed is None else msgspec.convert(claimed, Assignment)

    def _fetch(self, assignment: Assignment, into: IO[bytes]) -> None:
        self._api.download(f"{_place(assignment)}/package", into, limit_bytes=PACKAGE_BYTES, lease=assignment.lease)

    def _report(self, assignment: Assignment, said: WorkReport | ReplayReport) -> None:
        """Tell what was found; where nobody takes it the lease runs out, and the work is done again."""
        body = all_encodable(msgspec.to_builtins(said))
        for pause_s in (*PAUSES_S, None):
            try:
                self._api.post(f"{_place(assignment)}/report", body, lease=assignment.lease)
                return
            except ApiError as error:
                log.warning("not reported", work=assignment.work, reason=str(error))
                if pause_s is None or (400 <= error.status < 500 and error.status != BUSY):
                    return
            time.sleep(pause_s)

    @contextmanager
    def _renewed(self, assignment: Assignment) -> Iterator[None]:
        """For the time of a work its lease is renewed."""
        over = threading.Event()
        thread = threading.Thread(target=self._renew, args=(assignment, over), name=f"lease {assignment.work}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _renew(self, assignment: Assignment, over: threading.Event) -> None:
        while not over.wait(assignment.lease_s / 4):
            try:
                self._api.post(f"{_place(assignment)}/renew", lease=assignment.lease)
            except ApiError as error:
                log.warning("lease not renewed", work=assignment.work, reason=str(error))
                if error.status == CONFLICT:
                    return

    # --- the work ------------------------------------------------------------------------------------------------------

    def _said(self, assignment: Assignment) -> WorkReport | ReplayReport:
        """What became of it. Raises ApiError where its package cannot be fetched."""
        return self._probed(assignment) if assignment.replay is None else self._regraded(assignment)

    def _regraded(self, assignment: Assignment) -> ReplayReport:
        assert assignment.replay is not None
        assert assignment.task is not None
        fetch = partial(self._fetch_state, assignment)
        try:
            environment = self._shelf.environment(assignment)
            return regraded(environment, assignment.task, assignment.replay, fetch, self._backend, self._shelf.folder)
        except (Unreadable, Refused, Broken) as error:
            return ReplayReport(failure=str(error)[:2000])

    def _fetch_state(self, assignment: Assignment, into: IO[bytes]) -> None:
        self._api.download(f"{_place(assignment)}/state", into, limit_bytes=PACKAGE_BYTES, lease=assignment.lease)

    def _probed(self, assignment: Assignment) -> WorkReport:
        try:
            environment = self._shelf.environment(assignment)
            if assignment.task is None:
                return WorkReport(listing=listing(environment))
            return WorkReport(task=probed(environment, assignment.task, assignment))
        except (Unreadable, Refused, Broken) as error:
            return WorkReport(failure=str(error)[:2000])


def _place(assignment: Assignment) -> str:
    return f"/v1/{'probe' if assignment.replay is None else 'replay'}-work/{assignment.work}"


def listing(environment: Environment) -> Listing:
    """The tasks of an environment that can be named, and what the lint says of them."""
    tasks = environment.tasks()
    nameable = [task for task in tasks if _nameable(task.id)]
    notes = [f"{len(tasks) - len(nameable)} tasks have names that no trajectory can bear"] if len(nameable) < len(tasks) else []
    if len(nameable) > MOST_TASKS:
        raise Unreadable(f"{len(nameable)} tasks, the limit is {MOST_TASKS}")
    hints = islice((_of_task(task, hint) for task in nameable for hint in linted(task)), MOST_HINTS)
    return Listing(
        content_version=environment.version,
        verifier_digest=environment.verifier_digest,
        tasks=[task.id for task in nameable],
        one_verifier=all(task.kind in (Kind.TEXT, Kind.ACTIONS) for task in tasks),
        notes=notes,
        hints=list(hints),
    )


def _nameable(name: str) -> bool:
    try:
        msgspec.convert(name, Identifier)
        name.encode()
    except (msgspec.ValidationError, UnicodeEncodeError):
        return False
    return True


def _of_task(task: TaskUnderTest, hint: Hint) -> Hint:
    return msgspec.structs.replace(hint, path=f"{task.id}/{hint.path}")


def linted(task: TaskUnderTest) -> Sequence[Hint]:
    """What the lint says of a task that is a folder."""
    if task.folder is None or not task.read:
        return ()
    try:
        return [Hint(rule=hint.rule, path=hint.path, line=hint.line, message=hint.message, tested_by=hint.proved_by) for hint in lint(task.folder)]
    except Unreadable:  # what is wrong with it the task itself says
        return ()


def probed(environment: Environment, name: str, assignment: Assignment) -> TaskReport:
    """Climb the ladder on one task. Raises Unreadable where it is not there."""
    task = next((task for task in environment.tasks() if task.id == name), None)
    if task is None:
        raise Unreadable(f"there is no task {name!r:.200}")
    hints: Mapping[str, Sequence[Hint]] = {name: linted(task)}
    found = probe(environment, depth=Depth(assignment.depth), hints=hints, only=[name], command=command(assignment.package))
    return bounded(found.tasks[0])


def bounded(report: TaskReport) -> TaskReport:
    """The same report, without what was printed in each run and the ends of long proofs where it would be too large to send."""
    if _size(report) <= REPORT_BYTES:
        return report
    short: dict[str, Any] = {
        "runs": [msgspec.structs.replace(run, detail="") for run in report.runs[:1000]],
        "evidence": [msgspec.structs.replace(one, proof=one.proof[:PROOF_CHARS], detail=one.detail[:PROOF_CHARS]) for one in report.evidence[:100]],
        "notes": (*(note[:PROOF_CHARS] for note in report.notes[:100]), "the report was too large to be sent: what was printed was left out"),
    }
    return msgspec.structs.replace(report, **short)


def _size(report: TaskReport) -> int:
    return len(msgspec.json.encode(all_encodable(msgspec.to_builtins(report))))
