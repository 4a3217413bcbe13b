"""What holds for every built-in check."""

from __future__ import annotations

from operator import attrgetter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector import catalog
from inspector.check import Declaration, Group
from inspector.engine import Needs, run
from inspector.task import RewardDeclaration
from inspector.testing import assert_conforms, envelope
from inspector.testing.episodes import read
from inspector.verdict import Outcome

BUILTIN = [check for name, check in catalog.load().checks.items() if name.startswith("builtin/")]


@pytest.mark.parametrize("check", BUILTIN, ids=attrgetter("name"))
def test_check_conforms(check):
    assert_conforms(check)


@pytest.mark.parametrize("check", BUILTIN, ids=attrgetter("name"))
def test_check_has_two_hits_and_a_near_miss(check):
    assert len(check.flagged) >= 2
    assert check.clean


def test_an_ordinary_paid_episode_is_clean():
    declaration = Declaration(reward=RewardDeclaration(min=0, max=1, paid_at=1), reference_tests=12)
    (assessment,) = run(BUILTIN, [read(envelope())], Needs([declaration]))
    assert {assessment.outcome(at) for at, check in enumerate(BUILTIN) if check.subject is not Group} <= {Outcome.CLEAN, Outcome.NOT_ASSESSED}
    assert not assessment.findings


numbers = st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0, -1.0, 1.7e308]), st.floats(-1e6, 1e6))
counts = st.one_of(st.none(), st.integers(0, 20), st.just(2**62))
texts = st.one_of(st.none(), st.sampled_from(["completed", "submitted", "timeout", "error", "cancelled", "max_steps", "", " Timeout "]))
boundaries = st.sampled_from([None, "provider", "harness", "tool", "sandbox", "task", "verifier"])
logs = st.one_of(
    st.none(),
    st.text(max_size=60),
    st.lists(st.sampled_from(["== 1 failed in 0.1s ==", "12 passed in 0.1s", "OK", "Ran 3 tests in 0.1s", "FAIL\tx\t0.1s"])).map("\n".join),
)
optional = {
    "rewards": st.none() | st.dictionaries(st.text(max_size=3), st.none() | st.fixed_dictionaries({"score": numbers, "weight": numbers}), max_size=3),
    "termination": st.none() | st.fixed_dictionaries({"reason": texts, "truncated": st.none() | st.booleans(), "timed_out": st.none() | st.booleans()}),
    "errors": st.none() | st.lists(st.fixed_dictionaries({"type": texts, "boundary": boundaries}), max_size=3),
    "verifier": st.none()
    | st.fixed_dictionaries(
        {
            "exit_code": st.none() | st.integers(-20, 200),
            "stdout": logs,
            "tests": st.none() | st.fixed_dictionaries(dict.fromkeys(["collected", "passed", "failed", "errors", "skipped"], counts)),
        }
    ),
}
envelopes = st.fixed_dictionaries({"reward": numbers, **optional}).map(lambda fields: envelope(**fields))
declarations = st.builds(
    Declaration,
    reward=st.builds(RewardDeclaration, min=numbers, max=numbers, paid_at=numbers, weights=st.none() | st.just({"tests": 0.8})),
    reference_tests=st.none() | st.integers(0, 20),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(envelopes, declarations)
def test_no_check_raises_on_any_trajectory(posted, declaration):
    (assessment,) = run(BUILTIN, [read(posted)], Needs([declaration]))
    assert Outcome.ERROR not in assessment.outcomes, assessment.notes


@settings(max_examples=50, deadline=None)
@given(envelopes)
def test_an_unscored_trajectory_is_never_blamed_for_its_reward(posted):
    (assessment,) = run(BUILTIN, [read({**posted, "reward": None})], Needs())
    assert {finding.check for finding in assessment.findings} <= {"builtin/verifier_counts_contradict_themselves", "builtin/ending_contradicts_itself"}


@settings(max_examples=50, deadline=None)
@given(envelopes)
def test_ids_runs_and_extra_change_nothing(posted):
    renamed = {**posted, "id": "x", "run": {"id": "y"}, "group": {"id": "z"}, "environment": {"id": "o/p", "version": "q"}, "extra": {"r": 1}}
    (one,), (other,) = run(BUILTIN, [read(posted)]), run(BUILTIN, [read(renamed)])
    assert one.outcomes == other.outcomes
