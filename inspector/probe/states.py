"""Learns what a reference leaves and what an agent could see, and writes the scripts that change what was left."""

from __future__ import annotations

import json
import re
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from inspector.environments.protocol import Script, Submission, TaskUnderTest, Unreadable
from inspector.environments.trees import read_tree
from inspector.probe.trials import Trials
from inspector.probe.words import Family

MARK = "looked:"
CHANGED = re.compile(r"^changed:(\d+)$", re.MULTILINE)
TEST_BYTES = 256 << 10
FOLDER = "/var/tmp/looking"  # noqa: S108 -- of the box


@dataclass(frozen=True, slots=True)
class Made:
    """A file that the reference wrote."""

    path: str
    kind: str  # `python`, `shell`, `data`, or `other`
    existed: bool
    digest: str


@dataclass(frozen=True, slots=True)
class Sight:
    """What was found by looking around."""

    cwd: str
    path: tuple[str, ...]  # folders of the task's own that are looked into before the system's
    made: tuple[Made, ...]
    whole: bool  # the files in `made` are all that the reference did
    tests: tuple[str, ...]  # test files that lie in the task's own folders
    readable: tuple[str, ...]  # files whose names tell of answers
    commits: tuple[tuple[str, str], ...]  # (repository, commit) that is not part of what is checked out
    twins: Mapping[str, tuple[str, ...]]  # way of contradicting -> the files that it makes others

    def of(self, *kinds: str) -> tuple[Made, ...]:
        """What was made, of these kinds."""
        return tuple(each for each in self.made if each.kind in kinds)


def look(trials: Trials, *, seed: int | None = None) -> Sight | None:
    """Run the reference, if there is one, and look around; None where the box let nothing be seen."""
    task = trials.task
    script = _around(_reference(task.reference), _tool("look"), task)
    _, grade = trials.graded("reference/looked_at", Family.REFERENCE, _like(task.reference, script), seed=seed)
    _, found, rest = grade.submission_evidence.rpartition(MARK)
    try:
        return _sight(json.loads(rest.partition("\n")[0])) if found else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _sight(facts: dict[str, object]) -> Sight:
    made = tuple(Made(str(path), str(kind), bool(existed), str(digest)) for path, kind, existed, digest in facts["made"])  # type: ignore[attr-defined]
    whole = not (facts["more"] or facts["deleted"] or facts["other"])
    texts = {name: tuple(str(each) for each in facts[name]) for name in ("path", "tests", "readable")}  # type: ignore[attr-defined]
    commits = tuple((str(folder), str(commit)) for folder, commit in facts["git"])  # type: ignore[attr-defined]
    twins = {str(how): tuple(str(path) for path in paths) for how, paths in facts["twins"].items()}  # type: ignore[attr-defined]
    return Sight(str(facts["cwd"]), texts["path"], made, whole, texts["tests"], texts["readable"], commits, twins)


def changed(task: TaskUnderTest, how: str, made: Sequence[Made], *, seed: int = 1, more: Sequence[str] = ()) -> Script:
    """What the reference leaves, with these files rewritten; see `boxed/agent.py` for the ways."""
    arguments = ["change", how, str(seed), *(each.path for each in made), *more]
    return _like(task.reference, _around(_reference(task.reference), _tool(*arguments), task))


def _like(reference: Submission | None, script: str) -> Script:
    return Script(script, solution=isinstance(reference, Script) and reference.solution)


def _reference(reference: Submission | None) -> str:
    """Shell text that runs the reference as if it stood where it does stand."""
    if not isinstance(reference, Script):
        return ""
    word = secrets.token_hex(8)
    return f"cat > /solution/.reference.sh <<'{word}'\n{reference.script}\n{word}\nbash /solution/.reference.sh < /dev/null\nrm -f /solution/.reference.sh\n"


def _tool(*arguments: str) -> str:
    return f"python3 -I {FOLDER}/agent.py {shlex.join(arguments)}"


def _around(reference: str, last: str, task: TaskUnderTest) -> str:
    """A script: the tool put in place, the listing, the reference, the tool's word, and all of it taken away."""
    tool = (files("inspector.probe") / "boxed" / "agent.py").read_text()
    word = secrets.token_hex(8)
    flag = " --tmp" if "/tmp/" in task.prompt else ""  # noqa: S108 -- of the box
    before = f"{_tool('before')}{flag}\n" if " look" in last else ""
    return f"mkdir -p {FOLDER}\ncat > {FOLDER}/agent.py <<'{word}'\n{tool}\n{word}\n{before}{reference}{last}{flag}\nrm -rf {FOLDER}\n"


def files_changed(said: str) -> int:
    """How many files a script of `changed` made others, as it said."""
    found = CHANGED.findall(said)
    return int(found[-1]) if found else 0


def put(contents: dict[str, str], *, executable: bool = False) -> str:
    """Shell text that writes files, their folders with them."""
    parts = []
    for path, text in contents.items():
        word = secrets.token_hex(8)
        mode = f"chmod +x {shlex.quote(path)}\n" if executable else ""
        parts.append(f"mkdir -p {shlex.quote(path.rpartition('/')[0] or '/')}\ncat > {shlex.quote(path)} <<'{word}'\n{text}\n{word}\n{mode}")
    return "".join(parts)


def verifier_texts(task: TaskUnderTest) -> str:
    """The texts of a task folder's tests, for what they name; empty where there are none to read."""
    if task.folder is None:
        return ""
    try:
        tree = read_tree(task.folder)
        return "\n".join(tree.text(file.path) for file in tree.below("tests") if file.size <= TEST_BYTES)
    except Unreadable:
        return ""
