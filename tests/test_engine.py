"""One check's mistakes cost its own outcome on that subject, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Meta

from inspector.check import (
    Baselines,
    Batch,
    Cause,
    Check,
    Declaration,
    Finding,
    Group,
    History,
    Inconclusive,
    Judge,
    NotAssessed,
    Span,
    Tier,
    Trajectory,
    Twin,
    check,
)
from inspector.engine import FINDINGS, MESSAGE_CHARS, Needs, run, run_groups
from inspector.task import RewardDeclaration
from inspector.testing import trajectory
from inspector.verdict import Outcome

mark = check(version=3, tier=Tier.ACTION, cause=Cause.VERIFIER_DEFECT)


@mark
def by_reward(trajectory: Trajectory, *, deadly: Annotated[float, Meta(le=100)] = 13.0) -> Iterator[Finding]:
    """The reward says what this check does."""
    reward = trajectory.reward
    if reward is None:
        raise NotAssessed("reward")
    if reward == deadly:
        raise RuntimeError("boom \x1b[31m")
    if reward == 0.5:
        raise Inconclusive("half")
    if reward > 1:
        yield Finding(message=f"reward {reward:g}", score=0.7)


@mark
def batched(batch: Batch) -> Iterator[Any]:
    """The same over many."""
    for each in batch:
        if each.reward is None:
            yield each, NotAssessed("reward")
        elif each.reward == 0.5:
            yield each, Inconclusive("half")
        elif each.reward == 13:
            raise RuntimeError("boom")
        elif each.reward > 1:
            yield each, Finding(message=f"reward {each.reward:g}")


@mark
def silent(trajectory: Trajectory) -> Iterator[Finding]:
    """Nothing is ever wrong."""
    yield from ()


REWARDS = [0.0, None, 0.5, 13.0, 2.0, 1.0]
EXPECTED = [Outcome.CLEAN, Outcome.NOT_ASSESSED, Outcome.INCONCLUSIVE, Outcome.ERROR, Outcome.FLAGGED, Outcome.CLEAN]


def subjects(rewards: Sequence[float | None]) -> list[Trajectory]:
    return [trajectory(id=f"t{at}", reward=reward) for at, reward in enumerate(rewards)]


def answers(made: Any) -> Check:
    """A check that hands out what it is given."""

    def handed(trajectory: Trajectory) -> Any:
        """Handed out."""
        return made() if callable(made) else made

    return mark(handed)


@pytest.mark.parametrize("one", [by_reward, batched], ids=["each", "batch"])
def test_each_subject_gets_its_own_outcome(one):
    assessments = run([silent, one], subjects(REWARDS))
    assert [assessment.outcome(1) for assessment in assessments] == EXPECTED
    assert {assessment.outcome(0) for assessment in assessments} == {Outcome.CLEAN}
    assert [dict(assessment.notes) for assessment in assessments[1:3]] == [{1: "reward"}, {1: "half"}]
    assert assessments[3].notes[1].startswith("RuntimeError: boom")
    assert [len(assessment.findings) for assessment in assessments] == [0, 0, 0, 0, 1, 0]


def test_a_finding_carries_who_found_it():
    (finding,) = run([by_reward.qualified("acme")], subjects([2.0]))[0].findings
    assert (finding.check, finding.version, finding.tier, finding.cause) == ("acme/by_reward", 3, Tier.ACTION, Cause.VERIFIER_DEFECT)
    assert (finding.message, finding.score) == ("reward 2", 0.7)


def test_the_text_of_an_error_is_made_showable():
    (assessment,) = run([by_reward], subjects([13.0]))
    assert assessment.notes[0] == "RuntimeError: boom ␛[31m"


def test_parameters_reach_the_check():
    (assessment,) = run([by_reward.with_parameters(deadly=1)], subjects([1.0]))
    assert assessment.outcome(0) is Outcome.ERROR


def yields_then(*, error: Exception | None, findings: int = 1) -> Any:
    for at in range(findings):
        yield Finding(message=f"finding {at}")
    if error:
        raise error


@pytest.mark.parametrize(
    ("made", "outcome", "findings", "note"),
    [
        (None, Outcome.ERROR, 0, "NoneType"),
        (7, Outcome.ERROR, 0, "not iterable"),
        (["text"], Outcome.ERROR, 0, "yielded str, not a Finding"),
        ([Finding(message="m", score=2.0)], Outcome.ERROR, 0, "score 2.0 is outside"),
        ([Finding(message="m", spans=(Span(step=9, field="message"),))], Outcome.ERROR, 0, "which is not there"),
        ([], Outcome.CLEAN, 0, None),
        ((Finding(message="a"), Finding(message="b")), Outcome.FLAGGED, 2, None),
        (lambda: yields_then(error=ZeroDivisionError("x")), Outcome.ERROR, 0, "ZeroDivisionError: x"),
        (lambda: yields_then(error=NotAssessed("sandbox")), Outcome.FLAGGED, 1, "sandbox"),
        (lambda: yields_then(error=Inconclusive("the rest")), Outcome.FLAGGED, 1, "the rest"),
        (lambda: yields_then(error=None, findings=10**9), Outcome.FLAGGED, FINDINGS, "more than 100 findings"),
        (lambda: yields_then(error=type("Rude", (Exception,), {"__str__": lambda self: 1 / 0})()), Outcome.ERROR, 0, "cannot be read"),
    ],
)
def test_whatever_a_check_answers_has_an_outcome(made, outcome, findings, note):
    (odd,) = run([silent, answers(made), silent], subjects([1.0]))
    assert list(odd.outcomes) == [Outcome.CLEAN, outcome, Outcome.CLEAN]
    assert len(odd.findings) == findings
    assert note in odd.notes[1] if note else 1 not in odd.notes


def test_a_deadline_passes_through():
    class Deadline(BaseException):
        pass

    def late() -> Any:
        raise Deadline

    with pytest.raises(Deadline):
        run([answers(late)], subjects([1.0]))


def test_long_texts_are_cut_and_say_so():
    big = "A" * 10_000
    long = trajectory(steps=[{"step_id": 1, "source": "agent", "message": big}])
    (finding,) = run([answers([Finding(message=big, spans=(Span(step=0, field="message", start=0, end=10_000, quote=big),))])], [long])[0].findings
    assert finding.message == "A" * MESSAGE_CHARS + "… [8000 characters left out]"
    assert finding.spans[0].quote == "A" * 500 + "… [9500 characters left out]"
    assert finding.spans[0].end == 10_000


def test_a_foreign_trajectory_in_a_batch_is_an_error():
    @mark
    def stray(batch: Batch) -> Iterator[Any]:
        """It speaks of what it was not asked."""
        yield trajectory(id="other"), Finding(message="m")

    (assessment,) = run([stray], subjects([1.0]))
    assert assessment.notes == {0: "TypeError: yielded a trajectory that is not in the batch"}


def test_a_batch_is_called_once():
    calls = []

    @mark
    def counting(batch: Batch) -> Iterator[Any]:
        """It counts."""
        calls.append(len(batch))
        yield from ()

    run([counting], subjects([1.0] * 7))
    assert calls == [7]


@mark
def needy(trajectory: Trajectory, history: History, declaration: Declaration, baselines: Baselines) -> Iterator[Finding]:
    """It asks for everything."""
    yield Finding(message=f"{history.twins(trajectory)[0].id} {declaration.reward.max:g} {baselines.model('m')}")


@mark
def needy_batch(batch: Batch, declarations: Sequence[Declaration], history: History, baselines: Sequence[Baselines]) -> Iterator[Any]:
    """It asks for everything, for many."""
    for each, declaration, baseline in zip(batch, declarations, baselines, strict=True):
        if each.reward == 13:
            raise RuntimeError("boom")
        yield each, Finding(message=f"{history.twins(each)[0].id} {declaration.reward.max:g} {baseline.model('m')}")


@pytest.mark.parametrize("one", [needy, needy_batch], ids=["each", "batch"])
def test_each_subject_gets_its_own_needs(one):
    declarations = [Declaration(reward=RewardDeclaration(max=at)) for at in range(3)]
    history = History(twins={f"t{at}": [Twin(f"twin{at}", None)] for at in range(3)})
    needs = Needs(declarations, history, {("acme/terminal", "2026.11.1"): Baselines({"m": "model"})})
    rewards = [1.0, 1.0, 1.0] if one is needy else [1.0, 13.0, 1.0]  # the batch falls back to one by one
    said = [[finding.message for finding in assessment.findings] for assessment in run([one], subjects(rewards), needs)]
    expected = [["twin0 0 model"], ["twin1 1 model"], ["twin2 2 model"]]
    assert said == (expected if one is needy else [expected[0], [], expected[2]])


def test_misaligned_declarations_are_refused():
    with pytest.raises(ValueError, match="1 declarations for 2 subjects"):
        run([silent], subjects([1.0, 1.0]), Needs([Declaration()]))


@mark
def dead_group(group: Group, declaration: Declaration) -> Iterator[Finding]:
    """All rewards are equal."""
    if len({each.reward for each in group.trajectories}) == 1:
        yield Finding(message=f"{len(group.trajectories)} equal rewards")


@mark
def judged(trajectory: Trajectory, judge: Judge) -> Iterator[Finding]:
    """Late."""
    yield from ()


def test_what_a_call_does_not_run_stays_pending():
    checks = [silent, dead_group, judged]
    assert run(checks, subjects([1.0]))[0].outcomes == bytes([Outcome.CLEAN, Outcome.PENDING, Outcome.PENDING])
    alike, apart = run_groups(checks, [Group("a", subjects([1.0, 1.0])), Group("b", subjects([1.0, 0.0]))])
    assert alike.outcomes == bytes([Outcome.PENDING, Outcome.FLAGGED, Outcome.PENDING])
    assert apart.outcomes == bytes([Outcome.PENDING, Outcome.CLEAN, Outcome.PENDING])
    assert alike.findings[0].message == "2 equal rewards"


def test_nothing_to_do_is_no_mistake():
    assert run([silent], []) == []
    assert run([], subjects([1.0]))[0].outcomes == b""


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(REWARDS), max_size=8))
def test_a_subject_is_judged_the_same_in_any_company(rewards):
    together = run([by_reward, batched], subjects(rewards))
    alone = [run([by_reward, batched], [subject])[0] for subject in subjects(rewards)]
    assert together == alone
