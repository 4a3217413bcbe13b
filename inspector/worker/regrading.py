"""Grades a final state that a trainer uploaded again, in fresh boxes."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from inspector.assignments import Regrade, ReplayReport
from inspector.environments.protocol import Environment, Final, Grade, Kind, Submission, TaskUnderTest, Text, Unreadable
from inspector.errors import BadSubmission
from inspector.final_states import WHITEOUT, Left, read_whiteouts
from inspector.packing import unpack
from inspector.sandbox.protocol import Backend, Box, Layer, Limits

ANSWER_BYTES = 4 << 20
STAND_IN = ".stands-in"
LIMITS = Limits(wall_s=600.0)  # of the box in which a state is put together


def regraded(environment: Environment, task_id: str, asked: Regrade, fetch: Callable[[IO[bytes]], None], backend: Backend, room: Path) -> ReplayReport:
    """What the verifier pays, as often as was asked for. Raises Unreadable, Refused and Broken where the state cannot be put together."""
    task = next((task for task in environment.tasks() if task.id == task_id), None)
    if task is None:
        raise Unreadable(f"there is no task {task_id!r:.200}")
    with tempfile.TemporaryDirectory(dir=room) as folder:
        submission = _submission(task, _fetched(asked.state, fetch, Path(folder)), Path(folder), backend)
    rewards: list[float] = []
    for _ in range(asked.times):
        grade = environment.grade(task, submission)
        if grade.reward is None:
            return ReplayReport(rewards=rewards, failure=_why(grade))
        rewards.append(grade.reward)
    return ReplayReport(rewards=rewards)


def _why(grade: Grade) -> str:
    return f"{grade.trouble or 'no reward'}: {grade.evidence}"[:2000]


def _fetched(sha256: str, fetch: Callable[[IO[bytes]], None], folder: Path) -> Path:
    path = folder / "state"
    with path.open("w+b") as file:
        fetch(file)
        file.seek(0)
        if (found := hashlib.file_digest(file, "sha256").hexdigest()) != sha256:
            raise Unreadable(f"the final state has the sha256 {found}, not {sha256}")
    return path


def _submission(task: TaskUnderTest, state: Path, folder: Path, backend: Backend) -> Submission:
    if task.kind is Kind.ACTIONS:
        raise Unreadable("a task that compares actions grades no final state")
    if task.kind is Kind.STATE:
        return _final(state, folder / "files", backend)
    if state.stat().st_size > ANSWER_BYTES:
        raise Unreadable(f"an answer of {state.stat().st_size} bytes, the limit is {ANSWER_BYTES}")
    return Text(state.read_bytes().decode(errors="replace"))


def _final(tar: Path, files: Path, backend: Backend) -> Final:
    """The files of a tar, by their paths below /, and what it deletes, as a layer. Raises Unreadable, Refused and Broken."""
    files.mkdir()
    with tar.open("rb") as file:
        unpack(file, files)
    left = _read(files)
    with backend.create(_stand_ins(left, backend), limits=LIMITS) as box:
        _delete(box, left)
        for path in left.files:
            here = files / path
            box.write(f"/{path}", here.read_bytes(), mode=0o755 if here.stat().st_mode & stat.S_IXUSR else 0o644)
        return Final((box.snapshot(),))


def _read(files: Path) -> Left:
    found = [PurePosixPath(Path(folder, name).relative_to(files)) for folder, _, names in sorted(os.walk(files)) for name in sorted(names)]
    folders = [PurePosixPath(Path(folder, name).relative_to(files)) for folder, names, _ in os.walk(files) for name in names]
    try:
        if misnamed := [folder for folder in folders if folder.name.startswith(WHITEOUT)]:
            raise BadSubmission(f"{str(misnamed[0])!r:.200} is a folder named as a deletion", path="$.artifacts")
        return read_whiteouts((path, (files / path).stat().st_size) for path in found)
    except BadSubmission as error:
        raise Unreadable(f"the final state: {error}") from error


def _stand_ins(left: Left, backend: Backend) -> Sequence[Layer]:
    """A layer that holds something wherever something is deleted: a box records as deleted only what was there, and does not know the task's files."""
    if not (left.deleted or left.emptied):
        return ()
    with backend.create(limits=LIMITS) as box:
        for path in (*left.deleted, *(folder / STAND_IN for folder in left.emptied)):
            box.write(f"/{path}", b"")
        return (box.snapshot(),)


def _delete(box: Box, left: Left) -> None:
    """Before anything is written: a file of the state stays, whatever the state deletes under its name."""
    gone = [f"/{path}" for path in (*left.deleted, *left.emptied)]
    again = [f"/{path}" for path in left.emptied]
    for command, paths in ((["/bin/rm", "-rf", "--"], gone), (["/bin/mkdir", "-p", "--"], again)):
        if paths:
            result = box.run(["/usr/bin/xargs", "-0", *command], stdin="\0".join(paths).encode(errors="surrogateescape"))
            if not result.ok:
                raise Unreadable(f"what the final state deletes cannot be deleted: {result.stderr[:500].decode(errors='replace')}")
