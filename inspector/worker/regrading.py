"""Grades a final state that a trainer uploaded again, in fresh boxes."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from inspector.assignments import Regrade, ReplayReport
from inspector.environments.protocol import Environment, Final, Grade, Kind, Submission, TaskUnderTest, Text, Unreadable
from inspector.packing import unpack
from inspector.sandbox.protocol import Backend, Limits

ANSWER_BYTES = 4 << 20
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
    """The files of a tar, by their paths below /, as a layer."""
    files.mkdir()
    with tar.open("rb") as file:
        unpack(file, files)
    with backend.create(limits=LIMITS) as box:
        for folder, _, names in os.walk(files):
            for name in sorted(names):
                path = Path(folder, name)
                mode = 0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644
                box.write(f"/{path.relative_to(files)}", path.read_bytes(), mode=mode)
        return Final((box.snapshot(),))
