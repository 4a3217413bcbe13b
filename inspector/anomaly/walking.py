"""Walks one transcript once, in plain Python: this is on the hot path of every audit."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

from inspector.trajectory import Header, Source, Step, ToolCall, Trajectory, text_of

NAN = math.nan
LARGEST = 1e15  # what anybody counts; beyond it numbers are noise
LOOKED_AT = 2000  # characters of an answer that are searched for an error
_LIMITS = frozenset({"max_steps", "max_tokens", "timeout"})


class Walk(NamedTuple):
    """The features of one episode as they are counted; what was not recorded is NaN. A share is a count and what it is of."""

    turns: float
    calls: float
    silent_turns: float
    said: float
    done: float
    seen: float
    asked: float
    longest_said: float
    longest_done: float
    longest_seen: float
    last_said: float
    empty_answers: float
    failing_answers: float
    failures_in_a_row: float
    repeated_calls: float
    same_call_in_a_row: float
    repeated_answers: float
    tools: float
    main_tool: float
    tokens_written: float
    tokens_read: float
    seconds: float
    seconds_a_turn: float
    longest_pause: float
    reward: float
    unscored: float
    cut: float
    errors: float
    verifier_seconds: float
    tests: float
    failed_tests: float
    answers: float  # no feature itself: what some shares are of


def walk(trajectory: Trajectory) -> Walk:
    """All features of a trajectory."""
    steps = trajectory.document.steps
    if any(step.is_copied_context for step in steps):
        steps = [step for step in steps if not step.is_copied_context]
    spoken, acted, header = _spoken(steps), _acted(steps), trajectory.header
    seconds, pause = _times(header, steps)
    written, read = _tokens(steps, trajectory.document.final_metrics)
    tests = header.verifier.tests if header.verifier else None
    ending = header.termination
    return Walk(
        turns=spoken.turns,
        calls=acted.calls,
        silent_turns=spoken.silent,
        said=spoken.said,
        done=acted.done,
        seen=acted.seen,
        asked=spoken.asked,
        longest_said=spoken.longest,
        longest_done=acted.longest_done,
        longest_seen=acted.longest_seen,
        last_said=spoken.last,
        empty_answers=acted.empty,
        failing_answers=acted.failing,
        failures_in_a_row=acted.failures_in_a_row,
        repeated_calls=acted.repeated_calls,
        same_call_in_a_row=acted.same_in_a_row,
        repeated_answers=acted.repeated_answers,
        tools=acted.tools,
        main_tool=acted.main_tool,
        tokens_written=written,
        tokens_read=read,
        seconds=seconds,
        seconds_a_turn=seconds / spoken.turns if spoken.turns else NAN,
        longest_pause=pause,
        reward=NAN if header.reward is None else header.reward,
        unscored=header.reward is None,
        cut=NAN if ending is None else bool(ending.truncated or ending.timed_out or ending.reason in _LIMITS),
        errors=len(header.errors or ()),
        verifier_seconds=_number(header.verifier.duration_s) if header.verifier else NAN,
        tests=_number(tests.collected) if tests else NAN,
        failed_tests=_number(tests.failed) if tests else NAN,
        answers=acted.answers,
    )


# --- what was said ---------------------------------------------------------------------------------------------------


class _Spoken(NamedTuple):
    turns: int
    silent: int
    said: int
    asked: int
    longest: int
    last: int


def _spoken(steps: Sequence[Step]) -> _Spoken:
    turns = silent = said = asked = longest = last = 0
    agent = Source.AGENT
    for step in steps:
        message = step.message
        length = 0 if message is None else len(message) if type(message) is str else len(text_of(message))
        if step.source is not agent:
            asked += length
            continue
        turns += 1
        said += length
        longest = max(longest, length)
        last = length or last
        if not step.tool_calls:
            silent += 1
    return _Spoken(turns, silent, said, asked, longest, last)


# --- what was done ---------------------------------------------------------------------------------------------------


class _Acted(NamedTuple):
    calls: int
    done: int
    longest_done: int
    repeated_calls: int
    same_in_a_row: int
    tools: int
    main_tool: int
    answers: int
    seen: int
    longest_seen: int
    empty: int
    failing: int
    failures_in_a_row: int
    repeated_answers: int


def _acted(steps: Sequence[Step]) -> _Acted:
    calls: list[tuple[str, ...]] = []
    lengths: list[int] = []
    answers: list[str] = []
    for step in steps:
        if step.tool_calls:
            for call in step.tool_calls:
                arguments = _arguments(call)
                calls.append((call.function_name, *arguments))
                lengths.append(len("".join(arguments)))
        if step.observation is not None:
            for result in step.observation.results:
                content = result.content
                answers.append(content if type(content) is str else text_of(content))
    sizes = list(map(len, answers))
    names = [call[0] for call in calls]
    tools = set(names)
    failing = [_fails(answer) for answer in answers]
    repeated = len(calls) - len(set(calls))
    failed = sum(failing)
    return _Acted(
        calls=len(calls),
        done=sum(lengths),
        longest_done=max(lengths, default=0),
        repeated_calls=repeated,
        same_in_a_row=_longest_run(calls) if repeated else min(len(calls), 1),
        tools=len(tools),
        main_tool=len(names) if len(tools) == 1 else max(Counter(names).values(), default=0),
        answers=len(answers),
        seen=sum(sizes),
        longest_seen=max(sizes, default=0),
        empty=sizes.count(0),
        failing=failed,
        failures_in_a_row=_longest_true(failing) if failed else 0,
        repeated_answers=len(answers) - len(set(answers)),
    )


def _arguments(call: ToolCall) -> list[str]:
    """As texts."""
    values = list(call.arguments.values())
    for at, value in enumerate(values):
        if type(value) is not str:
            values[at] = repr(value)
    return values


def _fails(answer: str) -> bool:
    seen = answer if len(answer) <= LOOKED_AT else answer[:LOOKED_AT]
    return "rror" in seen or "xception" in seen or "not found" in seen or "No such" in seen


def _longest_run(values: Iterable[object]) -> int:
    """How many equal ones stand in a row at most."""
    longest = run = 0
    before: object = None
    for value in values:
        run = run + 1 if value == before else 1
        before = value
        longest = max(longest, run)
    return longest


def _longest_true(values: Iterable[bool]) -> int:
    longest = run = 0
    for value in values:
        run = run + 1 if value else 0
        longest = max(longest, run)
    return longest


# --- what it took ----------------------------------------------------------------------------------------------------


def _times(header: Header, steps: Sequence[Step]) -> tuple[float, float]:
    """(duration of the episode, longest pause between two steps), in seconds."""
    moments = _moments(steps)
    pause = max((later - earlier for earlier, later in pairwise(moments)), default=NAN)
    if header.started_at is not None and header.ended_at is not None:
        took = (header.ended_at - header.started_at).total_seconds()
    else:
        took = moments[-1] - moments[0] if len(moments) > 1 else NAN
    return (took if took >= 0 else NAN), (pause if pause >= 0 else NAN)


def _moments(steps: Sequence[Step]) -> list[float]:
    """When the steps were, in seconds since an arbitrary moment; empty where one of them cannot be read or they do not compare."""
    stamps = [stamp for step in steps if (stamp := step.timestamp) is not None]
    try:
        moments = [datetime.fromisoformat(stamp) for stamp in stamps]
        return [(moment - moments[0]).total_seconds() for moment in moments]
    except (ValueError, TypeError, OverflowError):
        return []


def _tokens(steps: Sequence[Step], totals: dict[str, Any] | None) -> tuple[float, float]:
    """(written in all, read at once at most), as the harness counted them."""
    written, read = -1, -1
    for step in steps:
        if metrics := step.metrics:
            if type(count := metrics.get("completion_tokens")) is int and count >= 0:
                written = max(written, 0) + count
            if type(count := metrics.get("prompt_tokens")) is int and count > read:
                read = count
    total = _number((totals or {}).get("total_completion_tokens")) if written < 0 else _number(written)
    return total, _number(read) if read >= 0 else NAN


def _number(value: object) -> float:
    """A count or a duration; NaN where it is none."""
    if type(value) is not int and type(value) is not float:
        return NAN
    return float(min(max(value, -LARGEST), LARGEST))
