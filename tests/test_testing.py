"""The common suite accepts what conforms and names what does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from msgspec import Meta

from inspector import gates
from inspector.check import Batch, Cause, Finding, Group, Judge, NotAssessed, Span, Tier, Trajectory, check
from inspector.errors import BadSubmission
from inspector.settings import Limits
from inspector.testing import Nonconforming, assert_conforms, envelope, example, odd_trajectories, trajectory
from inspector.testing.episodes import _odd

CLEAN = [example("just at the limit", envelope(reward=1.0))]
FLAGGED = [example("just above the limit", envelope(reward=1.5))]


def checked(function: Any, *, clean: Any = CLEAN, flagged: Any = FLAGGED) -> Any:
    return check(version=1, tier=Tier.ACTION, cause=Cause.ANOMALY, clean=clean, flagged=flagged)(function)


def high(trajectory: Trajectory, *, limit: Annotated[float, Meta(ge=0)] = 1.0) -> Iterator[Finding]:
    """The reward is high."""
    if trajectory.reward is None:
        raise NotAssessed("reward")
    if trajectory.reward > limit:
        yield Finding(message=f"{trajectory.reward} is above {limit}")


def high_batch(batch: Batch) -> Iterator[Any]:
    """The reward is high."""
    for each in batch:
        if each.reward is None:
            yield each, NotAssessed("reward")
        elif each.reward > 1:
            yield each, Finding(message=f"{each.reward} is above 1")


def high_group(group: Group) -> Iterator[Finding]:
    """The rewards are high."""
    if sum(each.reward or 0 for each in group.trajectories) > 1:
        yield Finding(message="the rewards are high")


@pytest.mark.parametrize("function", [high, high_batch, high_group])
def test_a_good_check_conforms(function):
    assert_conforms(checked(function))


def test_a_late_check_is_tested_on_its_form():
    def judged(trajectory: Trajectory, judge: Judge) -> Iterator[Finding]:
        """A judge says so."""
        yield from ()

    assert_conforms(checked(judged))
    with pytest.raises(Nonconforming, match="no flagged example"):
        assert_conforms(checked(judged, flagged=[]))


def no_sentence(trajectory: Trajectory) -> Iterator[Finding]:
    """high reward"""
    yield from high(trajectory)


def unbounded(trajectory: Trajectory, *, limit: float = 1.0) -> Iterator[Finding]:
    """The reward is high."""
    yield from high(trajectory, limit=limit)


def flags_all(trajectory: Trajectory) -> Iterator[Finding]:
    """Everything is wrong."""
    yield Finding(message="wrong")


def flags_none(trajectory: Trajectory) -> Iterator[Finding]:
    """Nothing is wrong."""
    yield from ()


def withholds(trajectory: Trajectory) -> Iterator[Finding]:
    """Nobody knows."""
    raise NotAssessed("the weather")
    yield


calls: list[int] = []


def fickle(trajectory: Trajectory) -> Iterator[Finding]:
    """It says something else each time."""
    calls.append(1)
    yield from high(trajectory)
    if trajectory.reward == 1.5:
        yield Finding(message=f"call {len(calls)}")


def mutates(trajectory: Trajectory) -> Iterator[Finding]:
    """It changes what it looks at."""
    trajectory.steps.clear()
    yield from high(trajectory)


def silent(trajectory: Trajectory) -> Iterator[Finding]:
    """It finds without a word."""
    yield from (Finding(message=" ") for _ in high(trajectory))


def misquotes(trajectory: Trajectory) -> Iterator[Finding]:
    """It quotes what is not there."""
    yield from (Finding(message="m", spans=(Span(step=0, field="message", start=0, end=5, quote="Nginx"),)) for _ in high(trajectory))


def points_nowhere(trajectory: Trajectory) -> Iterator[Finding]:
    """It points behind the end."""
    yield from (Finding(message="m", spans=(Span(step=99, field="message"),)) for _ in high(trajectory))


def in_company(batch: Batch) -> Iterator[Any]:
    """It judges each by the others."""
    for each in batch:
        if len(batch) > 1 or each.reward == 1.5:
            yield each, Finding(message="m")


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (no_sentence, "is no sentence: 'high reward'"),
        (unbounded, "the number 'limit' has no bound"),
        (flags_all, "clean example 'just at the limit': it answered flagged (wrong)"),
        (flags_none, "flagged example 'just above the limit': it answered clean (no finding)"),
        (withholds, "it answered not_assessed (the weather)"),
        (fickle, "asked twice it answered"),
        (mutates, "it changed its subject"),
        (silent, "a finding has no message"),
        (misquotes, "quotes 'Nginx', and there stands 'nginx'"),
        (points_nowhere, "span points at 'message' of step 99, which is not there"),
        (in_company, "in a batch it gets another answer than alone"),
    ],
)
def test_what_does_not_conform_is_named(function, complaint):
    with pytest.raises(Nonconforming) as raised:
        assert_conforms(checked(function))
    assert complaint in str(raised.value)


@pytest.mark.parametrize(
    ("examples", "complaint"),
    [
        ({"clean": []}, "it has no clean example"),
        ({"flagged": []}, "it has no flagged example"),
        ({"clean": [example("fine", envelope())]}, "'fine' does not say in 3 words"),
        ({"flagged": FLAGGED * 2}, "two examples are named 'just above the limit'"),
    ],
)
def test_examples_are_asked_for(examples, complaint):
    with pytest.raises(Nonconforming) as raised:
        assert_conforms(checked(high, **examples))
    assert complaint in str(raised.value)


def test_what_a_check_raises_passes_through_with_the_place():
    def stumbles(trajectory: Trajectory) -> Iterator[Finding]:
        """It stumbles over an episode without steps."""
        assert trajectory.steps[0]
        yield from high(trajectory)

    with pytest.raises(IndexError) as raised:
        assert_conforms(checked(stumbles))
    assert any("while stumbles judged: odd record" in note for note in raised.value.__notes__)


def test_an_example_that_the_door_refuses_is_named():
    with pytest.raises(BadSubmission) as raised:
        assert_conforms(checked(high, clean=[example("an example without a task", envelope(task=None))]))
    assert raised.value.__notes__ == ["while reading the clean example 'an example without a task'"]


def test_the_door_lets_all_odd_records_through():
    for posted in _odd().values():
        gates.admit(json.dumps(posted).encode(), Limits())
    assert odd_trajectories().keys() == _odd().keys()


def test_an_override_takes_the_place_of_a_whole_field():
    built = trajectory(key="k", id="t", reward=None, run=None, steps=[{"step_id": 1, "source": "user", "message": "hi"}])
    assert (built.key, built.id, built.reward, built.run, len(built.steps)) == ("k", "t", None, None, 1)
    assert not trajectory().defects
    assert not trajectory().unknown
