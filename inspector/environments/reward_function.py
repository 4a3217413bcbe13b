"""A reward function in TRL's signature, with a data set of rows: `f(prompts, completions, **columns) -> list[float | None]`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from inspector.environments.answers import Question, read_questions, taken_form
from inspector.environments.code import FOLDER, find_code, placed
from inspector.environments.graders import Grader
from inspector.environments.protocol import AS_DECLARED, Conditions, Grade, Submission, TaskUnderTest, Text, Trouble
from inspector.environments.rows import Row
from inspector.environments.trees import digest
from inspector.sandbox.protocol import Backend


class RewardFunction:
    """One function and its rows."""

    def __init__(self, module: str, function: str, rows: Sequence[Row], backend: Backend, *, folder: Path | None = None) -> None:
        files, name = find_code(module, folder or Path.cwd())
        self.id = f"{name}:{function}"
        self._files = files
        self._questions = {each.id: each for each in read_questions(rows)}
        setup = {"folder": FOLDER, "module": name, "function": function}
        self._grader = Grader(backend, "reward_function", setup, placed(files))

    @cached_property
    def version(self) -> str:
        """sha256 of the code and the rows."""
        rows = [(id.encode(), repr((each.prompt, sorted(each.columns.items()))).encode()) for id, each in sorted(self._questions.items())]
        return digest([(b"verifier", self.verifier_digest.encode()), *rows])

    @cached_property
    def verifier_digest(self) -> str:
        """sha256 of the function's name and the code that was found beside it; what is installed elsewhere is known by its name."""
        return digest([(self.id.encode(), b""), *((path.encode(), data) for path, data in sorted(self._files.items()))])

    def tasks(self) -> Sequence[TaskUnderTest]:
        """In the order of the rows."""
        return self._tasks

    @cached_property
    def _tasks(self) -> tuple[TaskUnderTest, ...]:
        labelled = [(each, each.labels[0]) for each in self._questions.values() if each.reference is None and each.labels]
        taken = taken_form(labelled, lambda each, text: self._graded(each, text, AS_DECLARED))
        return tuple(each.task(taken) for each in self._questions.values())

    def grade(self, task: TaskUnderTest, submission: Submission, conditions: Conditions = AS_DECLARED) -> Grade:
        """Call the function with one prompt, one completion and the row's columns."""
        if not isinstance(submission, Text):
            return Grade(None, trouble=Trouble.REFUSED, evidence="an answer in words is graded here")
        return self._graded(self._questions[task.id], submission.text, conditions)

    def _graded(self, question: Question, text: str, conditions: Conditions) -> Grade:
        return self._grader.grade({"prompt": question.prompt, "columns": question.columns, "text": text}, conditions)
