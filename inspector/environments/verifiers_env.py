"""Environments of the verifiers library; library and environment are imported inside boxes only, and answers are single turns.

An environment is installed, or lies in the working folder: as a module or package of its name, or in `environments/NAME/` as the library lays them out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from inspector.environments.answers import taken_form, text_task
from inspector.environments.code import FOLDER, find_code, placed
from inspector.environments.graders import Grader
from inspector.environments.protocol import AS_DECLARED, Conditions, Grade, Submission, TaskUnderTest, Text, Trouble
from inspector.environments.trees import digest
from inspector.sandbox.protocol import Backend

SIZE = 20  # rows


class VerifiersEnvironment:
    """One installed environment: its first rows."""

    def __init__(self, name: str, backend: Backend, *, size: int = SIZE, folder: Path | None = None) -> None:
        module = name.rpartition("/")[2].partition("@")[0].replace("-", "_").lower()
        here = folder or Path.cwd()
        laid_out = here / "environments" / module
        self._files, _ = find_code(module, laid_out if laid_out.is_dir() else here)
        self.id = f"verifiers:{name}"
        self._size = size
        self._grader = Grader(backend, "verifiers_env", {"id": name, "folder": FOLDER}, placed(self._files))

    @cached_property
    def _said(self) -> Mapping[str, Any]:
        return self._grader.tell({"size": self._size})

    @property
    def version(self) -> str:
        """sha256 of the rows and the kind of environment."""
        return digest([(self.id.encode(), repr(self._said["entries"]).encode()), (b"verifier", self.verifier_digest.encode())])

    @property
    def verifier_digest(self) -> str:
        """sha256 of the environment's name and kind, and of its code where it is not installed."""
        code = [(path.encode(), data) for path, data in sorted(self._files.items())]
        return digest([(self.id.encode(), self._said["source"].encode()), *code])

    def tasks(self) -> Sequence[TaskUnderTest]:
        """The rows. Raises Unreadable where the environment cannot be loaded."""
        return self._tasks

    @cached_property
    def _tasks(self) -> tuple[TaskUnderTest, ...]:
        entries = list(enumerate(self._said["entries"]))
        labelled = [(index, entry["texts"][0]) for index, entry in entries if entry["texts"]]
        taken = taken_form(labelled, lambda index, text: self._graded(index, text, AS_DECLARED))
        return tuple(text_task(str(index), entry["question"], None, entry["texts"], taken) for index, entry in entries)

    def grade(self, task: TaskUnderTest, submission: Submission, conditions: Conditions = AS_DECLARED) -> Grade:
        """Score an answer by the environment's rubric."""
        if not isinstance(submission, Text):
            return Grade(None, trouble=Trouble.REFUSED, evidence="an answer in words is graded here")
        return self._graded(int(task.id), submission.text, conditions)

    def _graded(self, index: int, text: str, conditions: Conditions) -> Grade:
        return self._grader.grade({"size": self._size, "index": index, "text": text}, conditions)
