"""Harbor task folders as an environment.

A submission is a script that works in the task's initial state, or the layers that were left before. It is graded in another box, fresh on the initial
state: with those layers where agent and verifier share an environment, with the declared artifacts alone where the verifier is separate. /solution is
there for the reference only, /tests for the verifier only, and the reward is read from what the verifier itself wrote. Where a script asks for it
(`lives_on`), a shared verifier works in the very box that the script left, with what still runs there, as it does where a harness keeps the container.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import NamedTuple

from inspector.environments import boxes
from inspector.environments.harbor import rewards, standing_in
from inspector.environments.harbor.building import Built, NotBuilt, build
from inspector.environments.harbor.folder import TaskFolder, Unread
from inspector.environments.protocol import AS_DECLARED, Conditions, Final, Grade, Script, Submission, TaskUnderTest, Text, Trouble, Unreadable
from inspector.environments.trees import File, Tree, digest
from inspector.sandbox.protocol import Backend, Box, Broken, Ended, Layer, Limits, Network, Refused, Result

ARGUMENT_BYTES = 100_000  # a longer script goes by a file: the kernel takes no such argument
ARTIFACTS = "/logs/artifacts"  # kept by convention
ARTIFACT_FILES = 2000
ARTIFACT_BYTES = 16 << 20
FETCHED_S = 0.3  # from the end of a verifier until a harness has fetched its reward
MIB = 1 << 20


class _Left(NamedTuple):
    """What a submission left."""

    layers: tuple[Layer, ...]
    result: Result | None


class HarborEnvironment:
    """One task folder, or a folder of them."""

    def __init__(self, name: str, folders: Sequence[TaskFolder | Unread], backend: Backend) -> None:
        self.id = name
        self._folders = {folder.id: folder for folder in folders}
        self._backend = backend
        self._lock = Lock()
        self._states: dict[str, Built | NotBuilt] = {}

    @cached_property
    def version(self) -> str:
        """sha256 of all files of all tasks, and of what stands in for an image."""
        own = [(b"tools", standing_in.tools_digest().encode())]
        return digest(own + [(id.encode(), _whole(folder).encode()) for id, folder in sorted(self._folders.items())])

    @cached_property
    def verifier_digest(self) -> str:
        """sha256 of the tests and the settings of the verifiers."""
        return digest((id.encode(), _verifier(folder).encode()) for id, folder in sorted(self._folders.items()))

    @cached_property
    def _tasks(self) -> tuple[TaskUnderTest, ...]:
        return tuple(self._task(folder) for folder in self._folders.values())

    def _task(self, folder: TaskFolder | Unread) -> TaskUnderTest:
        """One task; what turns out to be unreadable hides none of the others."""
        try:
            return folder.task()
        except Unreadable as error:
            unread = self._folders[folder.id] = Unread(folder.id, folder.tree.root if isinstance(folder, TaskFolder) else folder.root, str(error))
            return unread.task()

    def tasks(self) -> Sequence[TaskUnderTest]:
        """By their paths."""
        return self._tasks

    def grade(self, task: TaskUnderTest, submission: Submission, conditions: Conditions = AS_DECLARED) -> Grade:
        """Let the submission work, then the verifier."""
        folder = self._folders[task.id]
        if isinstance(folder, Unread):
            return Grade(None, trouble=Trouble.NOT_BUILT, evidence=folder.reason)
        try:
            if folder.unsupported:
                return Grade(None, trouble=Trouble.NOT_BUILT, evidence=folder.unsupported)
            return _Grading(folder, self._backend, self._state, conditions).grade(submission)
        except (NotBuilt, Unreadable) as error:
            return Grade(None, trouble=Trouble.NOT_BUILT, evidence=str(error))
        except (Refused, Broken) as error:
            return boxes.troubled(error)

    def start(self, task: TaskUnderTest) -> Box:
        """A box at the task's initial state, for an agent to work in: what it starts lives on between commands. Raises Refused and Broken."""
        folder = self._folders[task.id]
        if isinstance(folder, Unread):
            raise Refused(folder.reason)
        if folder.unsupported:
            raise Refused(folder.unsupported)
        try:
            return _Grading(folder, self._backend, self._state, AS_DECLARED).open()
        except (NotBuilt, Unreadable) as error:
            raise Refused(str(error)) from error

    def _state(self, tree: Tree, folder: str, limits: Limits) -> Built:
        """An initial state, built once; a failure of the task's own is remembered too."""
        with self._lock:
            key = f"{folder}:{tree.digest(file.path for file in tree.below(folder))}"
            if key not in self._states:
                try:
                    self._states[key] = build(self._backend, self._tools, tree, folder, limits)
                except NotBuilt as error:
                    self._states[key] = error
            state = self._states[key]
        if isinstance(state, NotBuilt):
            raise NotBuilt(str(state))
        return state

    @cached_property
    def _tools(self) -> standing_in.Tools:
        return standing_in.make(self._backend)


Stater = Callable[[Tree, str, Limits], Built]


class _Grading:
    """The phases of one grade."""

    def __init__(self, folder: TaskFolder, backend: Backend, state: Stater, conditions: Conditions) -> None:
        self._folder = folder
        self._config = folder.config
        self._backend = backend
        self._state = state
        self._conditions = conditions

    def grade(self, submission: Submission) -> Grade:
        if isinstance(submission, Text):
            return Grade(None, trouble=Trouble.REFUSED, evidence="a state is graded here: a script or its layers, no text")
        initial = self._state(self._folder.tree, "environment", self._limits(self._config.build_timeout_s))
        if isinstance(submission, Script) and submission.lives_on and not (submission.solution or self._config.separate):
            return self._verify_beside(initial, submission)
        left = self._work(initial, submission)
        grade = self._verify(initial, left.layers)
        if left.result is None:
            return grade
        grade = boxes.measured(replace(grade, submission_evidence=boxes.tail(left.result), submission_ok=left.result.ok), left.result)
        return self._without_services(submission, grade)

    def _verify_beside(self, initial: Built, submission: Script) -> Grade:
        """Let the verifier work where the script did, and what it left running work on until the reward is fetched."""
        with self._session(initial) as box:
            left = box.run(_command(box, submission), timeout_s=self._seconds(self._config.agent_timeout_s))
            grade = self._judged(box, initial, FETCHED_S)
            return boxes.measured(replace(grade, submission_evidence=boxes.tail(left), submission_ok=left.ok), left)

    def open(self) -> Box:
        """The initial state, to be worked in."""
        return self._session(self._state(self._folder.tree, "environment", self._limits(self._config.build_timeout_s)))

    def _session(self, initial: Built) -> Box:
        limits, network = self._limits(self._config.agent_timeout_s), self._network()
        where, environment = self._workdir(initial), self._variables(initial)
        return self._backend.create(initial.layers, limits=limits, network=network, environment=environment, cwd=where, session=True)

    def _without_services(self, submission: Submission, grade: Grade) -> Grade:
        """A reference whose services ended with its box says nothing about the task."""
        served = isinstance(submission, Script) and submission.solution and self._folder.starts_services
        if not served or grade.reward is None or grade.reward >= 1.0:
            return grade
        why = "the solution starts processes, which do not live until the grading here"
        return replace(grade, reward=None, trouble=Trouble.REFUSED, evidence=f"{why}\n{grade.evidence}")

    def _work(self, initial: Built, submission: Script | Final) -> _Left:
        if isinstance(submission, Final):
            return _Left(submission.layers, None)
        if not submission.script.strip():
            return _Left((), None)
        layers = [*initial.layers, self._solution(submission.script)] if submission.solution else initial.layers
        with self._box(layers, initial, self._config.agent_timeout_s) as box:
            environment = self._variables(initial)
            if submission.solution:
                environment |= self._config.solution_environment
            command = _command(box, submission)
            result = box.run(command, timeout_s=self._seconds(self._config.agent_timeout_s), cwd=self._workdir(initial), environment=environment)
            return _Left((box.snapshot(),), result)

    def _solution(self, script: str) -> Layer:
        """The solution folder as a layer of its own, so that it is no part of what the reference leaves."""
        with self._backend.create(limits=self._limits(60)) as box:
            _put(box, self._folder.tree, self._folder.tree.below("solution"), "solution", "/solution")
            box.write("/solution/solve.sh", script.encode(errors="replace"), mode=0o755)
            return box.snapshot()

    def _verify(self, initial: Built, layers: Sequence[Layer]) -> Grade:
        if not self._config.separate:
            with self._box([*initial.layers, *layers], initial, self._config.verifier_timeout_s) as box:
                return self._judged(box, initial)
        state, with_tests = self._verifier_state(initial)
        with self._box(state.layers, state, self._config.verifier_timeout_s) as box:
            return self._judged(box, state, carry=lambda: self._carry(initial, layers, box), with_tests=with_tests)

    def _judged(self, box: Box, state: Built, fetched_s: float = 0.0, *, carry: Callable[[], None] | None = None, with_tests: bool = True) -> Grade:
        """Run the verifier in a box that holds what is to be graded, or into which that is carried."""
        _cleared(box)
        if carry is not None:
            carry()
        if with_tests:
            _put(box, self._folder.tree, self._folder.tree.below("tests"), "tests", "/tests")
        box.run(["/bin/chmod", "a+x", "/tests/test.sh"], timeout_s=10)
        timeout_s = self._seconds(self._config.verifier_timeout_s)
        environment = {**self._variables(state), **self._config.verifier_environment}
        result = box.run(["/bin/bash", "-c", "/tests/test.sh"], timeout_s=timeout_s, cwd=self._workdir(state), environment=environment)
        if fetched_s:
            box.run(["/bin/sleep", str(fetched_s)], timeout_s=10)
        said = boxes.measured(_said(rewards.read_reward(box), result), result)
        if result.ended is Ended.OUT_OF_MEMORY and said.reward is not None:
            return said  # something that the verifier ran was ended, and it has said what that means
        return boxes.ended(result, timeout_s, self._config.memory_mb * MIB if self._config.memory_mb else None, declared=True) or said

    def _verifier_state(self, initial: Built) -> tuple[Built, bool]:
        """Where the verifier works, and whether its tests still have to be put there."""
        if self._config.separate and "tests/Dockerfile" in self._folder.tree:
            return self._state(self._folder.tree, "tests", self._limits(self._config.build_timeout_s)), False
        return initial, True

    def _carry(self, initial: Built, layers: Sequence[Layer], target: Box) -> None:
        """Bring the declared artifacts from what was left into the verifier's own environment."""
        with self._box([*initial.layers, *layers], initial, 60) as left:
            for source in [*self._config.artifacts, ARTIFACTS]:
                path = posixpath.normpath(posixpath.join(self._workdir(initial), source))
                found = left.run(["/usr/bin/find", path, "-type", "f", "-print0"], timeout_s=30).stdout.split(b"\0")[:-1]
                if len(found) > ARTIFACT_FILES:
                    raise Refused(f"the artifact {source[:100]} has more than {ARTIFACT_FILES} files")
                for place in (each.decode(errors="surrogateescape") for each in found):
                    within = f"{place}/".startswith(f"{path.rstrip('/')}/")  # what was left may speak in the place of `find`
                    data = left.read(place, ARTIFACT_BYTES) if within else None
                    if data is not None:
                        target.write(place, data, mode=0o755)

    def _box(self, layers: Sequence[Layer], state: Built, wall_s: float) -> Box:
        return boxes.fresh(self._backend, layers, limits=self._limits(wall_s), network=self._network(), cwd="/")

    def _network(self) -> Network:
        wanted = self._config.wants_network and Network.ON in self._backend.capabilities.network
        return boxes.network_of(self._conditions, Network.ON if wanted else Network.OFF)

    def _seconds(self, declared_s: float) -> float:
        return min(declared_s, self._conditions.timeout_s or declared_s)

    def _workdir(self, state: Built) -> str:
        return self._config.workdir or state.workdir

    def _variables(self, state: Built) -> dict[str, str]:
        bare = {} if self._folder.pytest_plugins else {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        return boxes.variables(self._conditions, {**bare, **state.environment, **self._config.environment})

    def _limits(self, wall_s: float) -> Limits:
        return Limits(
            wall_s=wall_s,
            cpus=self._config.cpus or 1.0,
            memory_bytes=(self._config.memory_mb or 2048) * MIB,
            pids=512,
            disk_bytes=(self._config.storage_mb or 1024) * MIB,
        )


def _command(box: Box, submission: Script) -> list[str]:
    if submission.solution:
        return ["/bin/bash", "/solution/solve.sh"]
    script = submission.script.encode(errors="replace")
    if len(script) <= ARGUMENT_BYTES and b"\0" not in script:
        return ["/bin/bash", "-c", script.decode()]
    box.write("/tmp/work.sh", script)  # noqa: S108 -- a path inside the box
    return ["/bin/bash", "/tmp/work.sh"]  # noqa: S108


def _cleared(box: Box) -> None:
    """As Harbor: a reward that was there before the verifier is none; root of a box may not write where the mode says no."""
    box.run(["/bin/chmod", "u+rwx", "/", "/logs", rewards.FOLDER], timeout_s=10)
    box.run(["/bin/rm", "-rf", "--", rewards.TEXT, rewards.JSON], timeout_s=10)
    made = box.run(["/bin/mkdir", "-p", rewards.FOLDER, ARTIFACTS], timeout_s=10)
    if not made.ok:
        raise Refused(f"{rewards.FOLDER} cannot be made on what was left: {boxes.tail(made, 200)}")


def _put(box: Box, tree: Tree, chosen: Sequence[File], folder: str, target: str) -> None:
    for file in chosen:
        box.write(f"{target}/{file.path.removeprefix(f'{folder}/')}", tree.read(file.path), mode=0o755 if file.executable else 0o644)


def _said(grade: Grade, result: Result) -> Grade:
    return replace(grade, evidence=f"{grade.evidence}\n{boxes.tail(result)}".strip())


def _whole(folder: TaskFolder | Unread) -> str:
    return folder.reason if isinstance(folder, Unread) else folder.tree.digest()


def _verifier(folder: TaskFolder | Unread) -> str:
    if isinstance(folder, Unread):
        return folder.reason
    settings: Mapping[str, object] = {"separate": folder.config.separate, "env": sorted(folder.config.verifier_environment.items())}
    return folder.tree.digest(file.path for file in folder.tree.below("tests")) + repr(settings)
