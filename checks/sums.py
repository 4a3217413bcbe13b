"""The parts of a reward, or the counts of a test run, do not add up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

from msgspec import Meta

from inspector.check import Cause, Declaration, Finding, Inconclusive, NotAssessed, Tier, Trajectory, check, envelope, example

LISTED = 8  # parts that a message writes out


def _parts(tests: float, style: float | None, **others: Any) -> dict[str, Any]:
    return {"tests": {"score": tests, "weight": 0.8}, "style": {"score": style, "weight": 0.2}, **others}


def _unweighted(tests: float, style: float, **others: float) -> dict[str, Any]:
    return {name: {"score": score} for name, score in {"tests": tests, "style": style, **others}.items()}


_DECLARED = {"reward": {"min": 0, "max": 1, "weights": {"tests": 0.8, "style": 0.2}}}


@check(
    version=1,
    tier=Tier.EVIDENCE,
    cause=Cause.RECORD_DEFECT,
    clean=[
        example("0.8 * 1 + 0.2 * 0.5 is 0.9", envelope(reward=0.9, rewards=_parts(1.0, 0.5))),
        example("declared weights, and a metric outside the total", envelope(reward=0.8, rewards=_unweighted(1, 0, words=214)), declaration=_DECLARED),
        example("the sum is cut at the declared maximum", envelope(reward=1.0, rewards=_parts(1.0, 4.0)), declaration=_DECLARED),
        example("rounded to two decimals", envelope(reward=0.33, rewards={"tests": {"score": 0.3333, "weight": 1.0}})),
        example("an unscored part that weighs nothing", envelope(reward=0.8, rewards={"tests": {"score": 1.0, "weight": 0.8}, "style": {"weight": 0.0}})),
    ],
    flagged=[
        example("the style was not counted, yet all was paid", envelope(reward=1.0, rewards=_parts(1.0, 0.0))),
        example("the declared weights give 0.2 and not nothing", envelope(reward=0.0, rewards=_unweighted(0, 1)), declaration=_DECLARED),
        example(
            "a part's own weight goes before the declared one",
            envelope(reward=0.8, rewards={"tests": {"score": 1.0, "weight": 0.5}, "style": {"score": 0.0}}),
            declaration=_DECLARED,
        ),
    ],
)
def reward_is_not_the_sum_of_its_parts(
    trajectory: Trajectory, declaration: Declaration, *, tolerance: Annotated[float, Meta(ge=0, le=1)] = 0.01
) -> Iterator[Finding]:
    """The weighted parts of the reward do not add up to the reward.

    A part counts with its own weight, else with the declared one; where weights are declared, a part without any is
    outside the total. A sum cut at a declared bound is accepted. A weighted part that was not scored is not a zero: the sum
    is then inconclusive. `tolerance` is relative to the declared range, else to the reward, and absorbs rounding.
    """
    reward = trajectory.reward
    if reward is None or not trajectory.rewards:
        return
    terms = list(_terms(trajectory, declaration))
    total = sum(term.weight * term.score for term in terms if term.weight is not None and term.score is not None)
    if unscored := [term for term in terms if term.score is None and term.weight]:
        raise Inconclusive(f"the part {unscored[0].name!r} weighs {unscored[0].weight:g} and was not scored")
    if _agrees(total, reward, declaration, tolerance):
        return
    if unknown := [term for term in terms if term.weight is None]:
        raise Inconclusive(f"the part {unknown[0].name!r} was not scored, and its weight is not known")
    yield Finding(message=f"the parts add up to {total:g} ({_told(terms)}), but the reward is {reward:g}", grave=True)


class _Term(NamedTuple):
    name: str
    weight: float | None  # None only where the score is missing too
    score: float | None


def _terms(trajectory: Trajectory, declaration: Declaration) -> Iterator[_Term]:
    declared = declaration.reward.weights
    for name in dict.fromkeys([*trajectory.rewards, *(declared or ())]):
        part = trajectory.rewards.get(name)
        weight, score = (part.weight, part.score) if part else (None, None)
        if weight is None and declared is not None:
            weight = declared.get(name, 0.0)
        if weight is None and score is not None:
            raise NotAssessed(f"declaration: reward.weights, for the part {name!r}")
        if weight != 0:
            yield _Term(name, weight, score)


def _agrees(total: float, reward: float, declaration: Declaration, tolerance: float) -> bool:
    low, high = declaration.reward.min, declaration.reward.max
    scale = high - low if low is not None and high is not None and high > low else max(1.0, abs(reward))
    cut = max(total, low) if low is not None else total
    cut = min(cut, high) if high is not None else cut
    return abs(total - reward) <= tolerance * scale or abs(cut - reward) <= tolerance * scale


def _told(terms: list[_Term]) -> str:
    shown = " + ".join(f"{term.name} {term.score:g} * {term.weight:g}" for term in terms[:LISTED])
    return shown + (f" + {len(terms) - LISTED} more" if len(terms) > LISTED else "")


def _tests(**counts: int) -> dict[str, Any]:
    return {"exit_code": 0, "tests": counts}


@check(
    version=1,
    tier=Tier.EVIDENCE,
    cause=Cause.RECORD_DEFECT,
    clean=[
        example("some tests were deselected after collection", envelope(verifier=_tests(collected=12, passed=7, failed=0))),
        example("a module that skips itself is never collected", envelope(verifier=_tests(collected=10, passed=10, failed=0, skipped=1))),
        example("passed, and then an error when tearing down", envelope(verifier=_tests(collected=4, passed=4, errors=1))),
    ],
    flagged=[
        example("more passed than were collected", envelope(verifier=_tests(collected=10, passed=12, failed=0))),
        example("together more passed and failed than were collected", envelope(reward=0.0, verifier=_tests(collected=12, passed=9, failed=5))),
    ],
)
def verifier_counts_contradict_themselves(trajectory: Trajectory) -> Iterator[Finding]:
    """The verifier's report counts more tests passed and failed than were collected.

    The counts were taken from another run or parsed wrongly, so what rests on them is doubtful. Errors and skips are left
    out of the sum: test runners count both also for what they never collected.
    """
    tests = trajectory.verifier.tests if trajectory.verifier else None
    if tests is None or tests.collected is None:
        return
    passed, failed = tests.passed or 0, tests.failed or 0
    if passed + failed > tests.collected:
        yield Finding(message=f"the verifier reports {passed} passed and {failed} failed of {tests.collected} collected tests")
