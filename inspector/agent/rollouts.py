"""Several episodes of an agent on one task: each from the initial state, judged by what it left, written down as ATIF."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec

from inspector.agent.loop import UNTOLD, Agent, Ending, Episode
from inspector.environments.protocol import Environment, Final, Grade, Kind, Submission, TaskUnderTest, Text, Trouble
from inspector.probe.sequential import Rate, Standing, ThreeWay, pass_at_k
from inspector.sandbox.protocol import Box, Broken, Refused

_CODE = re.compile(r"```(?:python|py)?[ \t]*\r?\n(.*?)```", re.DOTALL)
_UNSAFE = re.compile(r"[^\w.-]+")


@runtime_checkable
class Workplace(Protocol):
    """An environment whose tasks are worked on in a box."""

    def start(self, task: TaskUnderTest) -> Box:
        """A box at the task's initial state, whose processes live on between commands. Raises Refused and Broken."""
        ...


@dataclass(frozen=True, slots=True)
class Attempt:
    """One episode with its grade."""

    episode: Episode
    grade: Grade | None  # None where the episode says nothing about the task
    passed: bool

    @property
    def counts(self) -> bool:
        """Whether it says anything about the task."""
        return self.grade is not None and self.grade.reward is not None


@dataclass(slots=True)
class Rollouts:
    """All attempts at one task."""

    task: str
    attempts: list[Attempt] = field(default_factory=list)
    standing: Standing = Standing.OPEN

    @property
    def runs(self) -> int:
        """Those that count: an endpoint or a sandbox that failed says nothing."""
        return sum(attempt.counts for attempt in self.attempts)

    @property
    def passed(self) -> int:
        return sum(attempt.passed for attempt in self.attempts)

    def pass_at(self, k: int) -> Rate | None:
        """The unbiased estimate with its interval; None with fewer than k runs that count."""
        return pass_at_k(self.passed, self.runs, k) if 1 <= k <= self.runs else None


def roll_out(environment: Environment, task: TaskUnderTest, agent: Agent, *, runs: int, seed: int = 0, folder: Path | None = None) -> Rollouts:
    """At most `runs` episodes; fewer where the sequential test has decided, or where nothing that is tried can be told."""
    found, test = Rollouts(task.id), ThreeWay(cap=runs)
    for number in range(runs):
        attempt = _attempt(environment, task, agent, seed + number)
        found.attempts.append(attempt)
        if folder is not None:
            write(folder, environment, task, agent, attempt, number)
        if attempt.counts:
            found.standing = test.add(attempt.passed)
        if found.standing in (Standing.DEAD, Standing.EASY, Standing.USABLE) or _hopeless(found):
            break
    return found


def _hopeless(found: Rollouts) -> bool:
    return len(found.attempts) >= 3 and not found.runs


def _attempt(environment: Environment, task: TaskUnderTest, agent: Agent, seed: int) -> Attempt:
    episode, submission = _submission(environment, task, agent, seed)
    if submission is None:
        return Attempt(episode, None, passed=False)
    grade = environment.grade(task, submission)
    return Attempt(episode, grade, passed=grade.reward is not None and grade.reward >= task.paid_at)


def _submission(environment: Environment, task: TaskUnderTest, agent: Agent, seed: int) -> tuple[Episode, Submission | None]:
    if task.kind is Kind.STATE:
        return _worked(environment, task, agent, seed)
    episode, text = agent.answer(task.prompt, seed=seed)
    if episode.ending in UNTOLD:
        return episode, None
    code = _CODE.search(text) if task.kind is Kind.CODE else None
    return episode, Text(code[1] if code else text)


def _worked(environment: Environment, task: TaskUnderTest, agent: Agent, seed: int) -> tuple[Episode, Submission | None]:
    if not isinstance(environment, Workplace):
        return Episode(Ending.SANDBOX, "this environment gives no box to work in"), None
    episode = Episode()
    try:
        with environment.start(task) as box:
            episode = agent.work(task.prompt, box, seed=seed)
            return episode, None if episode.ending in UNTOLD else Final((box.snapshot(),))
    except (Broken, Refused) as error:
        episode.ending, episode.reason = Ending.SANDBOX, str(error)
        return episode, None


# --- on disk -----------------------------------------------------------------------------------------------------------


def document(task: TaskUnderTest, agent: Agent, attempt: Attempt) -> dict[str, Any]:
    """The episode in ATIF."""
    episode, grade = attempt.episode, attempt.grade
    return {
        "schema_version": "ATIF-v1.8",
        "session_id": f"probe-{task.id}",
        "agent": {"name": "inspector-probe", "version": "1", "model_name": agent.endpoint.model},
        "steps": episode.steps,
        "final_metrics": {"total_steps": len(episode.steps)},
        "extra": {
            "ending": episode.ending,
            "reason": episode.reason,
            "tokens": episode.tokens,
            "summaries": episode.summaries,
            "reward": grade.reward if grade else None,
            "trouble": grade.trouble if grade else Trouble.BROKEN,
        },
    }


def write(folder: Path, environment: Environment, task: TaskUnderTest, agent: Agent, attempt: Attempt, number: int) -> Path:
    """Write an episode down, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{_UNSAFE.sub('_', task.id)[:80]}-{environment.version[:8]}-{number:03}.atif.json"
    part = folder / f".{name}.part"
    part.write_bytes(msgspec.json.format(msgspec.json.encode(document(task, agent, attempt)), indent=1))
    return part.replace(folder / name)
