"""A reward function in TRL's signature, with a data set of rows: `f(prompts, completions, **columns) -> list[float | None]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath

from inspector.environments.answers import Question, read_questions, taken_form
from inspector.environments.graders import Grader
from inspector.environments.protocol import AS_DECLARED, Conditions, Grade, Submission, TaskUnderTest, Text, Trouble, Unreadable
from inspector.environments.rows import Row
from inspector.environments.trees import digest, read_file, read_tree
from inspector.sandbox.protocol import Backend

FOLDER = "/srv/verifier"
CODE_FILES, CODE_BYTES = 2000, 64 << 20
SIBLING_FILES = 200


class RewardFunction:
    """One function and its rows."""

    def __init__(self, module: str, function: str, rows: Sequence[Row], backend: Backend, *, folder: Path | None = None) -> None:
        files, name = find_code(module, folder or Path.cwd())
        self.id = f"{name}:{function}"
        self._files = files
        self._questions = {each.id: each for each in read_questions(rows)}
        setup = {"folder": FOLDER, "module": name, "function": function}
        self._grader = Grader(backend, "reward_function", setup, {f"{FOLDER}/{path}": data for path, data in files.items()})

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
        form = taken_form(labelled, lambda each, text: self._graded(each, text, AS_DECLARED))
        return tuple(each.task(form) for each in self._questions.values())

    def grade(self, task: TaskUnderTest, submission: Submission, conditions: Conditions = AS_DECLARED) -> Grade:
        """Call the function with one prompt, one completion and the row's columns."""
        if not isinstance(submission, Text):
            return Grade(None, trouble=Trouble.REFUSED, evidence="an answer in words is graded here")
        return self._graded(self._questions[task.id], submission.text, conditions)

    def _graded(self, question: Question, text: str, conditions: Conditions) -> Grade:
        return self._grader.grade({"prompt": question.prompt, "columns": question.columns, "text": text}, conditions)


def find_code(module: str, folder: Path) -> tuple[Mapping[str, bytes], str]:
    """The files that a box needs to import a module, and its name there; none for what is installed beside us. Raises Unreadable."""
    if module.endswith(".py"):
        path = folder / module
        if not path.is_file():
            raise Unreadable(f"no file {module!r:.200}")
        return dict(_siblings(path.parent)), path.stem
    head = module.split(".")[0]
    if (folder / head).is_dir():
        tree = read_tree(folder / head, files=CODE_FILES, size=CODE_BYTES)
        return {f"{head}/{file.path}": tree.read(file.path) for file in tree.files if _wanted(file.path)}, module
    if (folder / f"{head}.py").is_file():
        return dict(_siblings(folder)), module
    return {}, module


def _wanted(path: str) -> bool:
    return not any(part.startswith(".") or part == "__pycache__" for part in PurePosixPath(path).parts)


def _siblings(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Python files of one folder, which may import each other."""
    names = sorted(path.name for path in folder.iterdir() if path.suffix == ".py" and not path.is_symlink())
    if len(names) > SIBLING_FILES:
        raise Unreadable(f"{folder.name}: more than {SIBLING_FILES} Python files beside the reward function")
    return ((name, read_file(folder, name, CODE_BYTES)) for name in names)
