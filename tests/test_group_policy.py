"""A group is decided together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.group_policy import judge_group
from inspector.policy import Policy
from inspector.verdict import Action, Cause, Judgement, Verdict

keep = Judgement(verdict=Verdict.ACCEPT, probability=0.05, action=Action.KEEP)
exclude = Judgement(verdict=Verdict.QUARANTINE, probability=0.95, action=Action.EXCLUDE)
hold = Judgement(verdict=Verdict.PENDING, probability=0.05, action=Action.HOLD)


def override(value):
    return Judgement(verdict=Verdict.QUARANTINE, probability=0.95, action=Action.OVERRIDE_REWARD, reward_override=value)


@pytest.mark.parametrize(
    ("judgements", "rewards", "action", "confirmed"),
    [
        ([keep, keep, keep], [1.0, 0.0, 1.0], Action.KEEP, ()),
        ([keep, keep], [0.0, 0.0], Action.KEEP, ()),  # all equal, but by nobody's decision
        ([keep, keep], [None, None], Action.KEEP, ()),
        ([], [], Action.KEEP, ()),
        ([exclude, keep, keep], [1.0, 0.0, 1.0], Action.KEEP, ()),
        ([exclude, keep, keep], [1.0, 0.0, 0.0], Action.KEEP, ()),  # equal, but not through overrides
        ([exclude, keep], [1.0, 0.0], Action.EXCLUDE, ()),  # one row has nothing to be ranked against
        ([exclude, exclude], [1.0, 0.0], Action.EXCLUDE, ()),
        ([exclude, keep, keep], [1.0, 0.0, None], Action.EXCLUDE, ()),  # not scored is not left
        ([override(0.0), keep, keep], [1.0, 0.0, 1.0], Action.KEEP, ()),
        ([override(0.0), keep, keep], [1.0, 0.0, 0.0], Action.EXCLUDE, (0,)),
        ([keep, override(0.0), override(0.0)], [0.0, 1.0, 0.5], Action.EXCLUDE, (1, 2)),
        ([override(0.0), override(0.0)], [1.0, 1.0], Action.EXCLUDE, (0, 1)),
        ([override(0.0), keep], [0.0, 0.0], Action.KEEP, ()),  # the exploit was not paid: the override changed nothing
        ([override(-1.0), keep, keep], [1.0, 0.0, 0.0], Action.KEEP, ()),  # the penalty still ranks it below
        ([override(0.0), exclude, keep], [1.0, 1.0, 0.0], Action.EXCLUDE, (0,)),
        ([override(0.0), exclude], [1.0, 1.0], Action.EXCLUDE, (0,)),
        ([override(0.0), keep, hold], [1.0, 0.0, 0.0], Action.KEEP, ()),  # a row is still to come
    ],
)
def test_a_group_is_decided_together(judgements, rewards, action, confirmed):
    group = judge_group(judgements, rewards)
    assert (group.action, group.confirmed_exploits) == (action, confirmed)
    assert bool(group.reason) == (action is Action.EXCLUDE)
    assert Policy.judge_group(judgements, rewards) == group


def test_rows_without_their_reward_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        judge_group([keep, keep], [1.0])


@given(st.lists(st.tuples(st.sampled_from([keep, exclude, override(0.0), override(-1.0)]), st.none() | st.sampled_from([0.0, 1.0])), max_size=8))
def test_a_group_that_is_kept_after_a_change_can_still_rank_its_rows(rows):
    judgements, rewards = [j for j, _ in rows], [r for _, r in rows]
    group = judge_group(judgements, rewards)
    if group.action is Action.KEEP and any(j is not keep for j in judgements):
        assert sum(j is not exclude and (r is not None or j.reward_override is not None) for j, r in rows) >= 2
    assert all(judgements[at].action is Action.OVERRIDE_REWARD for at in group.confirmed_exploits)


@pytest.mark.parametrize(
    ("judgements", "rewards", "impact"),
    [
        ([keep, keep], [1.0, 1.0], None),
        ([exclude, keep, keep], [1.0, 1.0, 0.0], (3, 2, False)),
        ([exclude, keep, keep], [1.0, 0.0, 0.0], (3, 2, True)),  # it stays, and nothing is learnt from it
        ([exclude, keep], [1.0, 0.0], (2, 1, True)),
        ([override(0.0), keep, keep], [1.0, 0.0, None], (3, 2, True)),
    ],
)
def test_a_group_that_decisions_changed_is_told_what_is_left_of_it(judgements, rewards, impact):
    told = judge_group(judgements, rewards).impact
    assert (told and (told.rows, told.left, told.zero_variance)) == impact


def test_a_reward_that_a_repaired_verifier_gave_counts_against_no_task():
    regraded = Judgement(verdict=Verdict.QUARANTINE, probability=0.95, action=Action.OVERRIDE_REWARD, cause=Cause.VERIFIER_DEFECT, reward_override=0.0)
    group = judge_group([regraded, keep, keep], [1.0, 0.0, 0.0])
    assert (group.action, group.confirmed_exploits) == (Action.KEEP, ())


def test_new_rollouts_may_succeed_where_rows_are_missing_by_nobodys_doing():
    dead = Judgement(verdict=Verdict.QUARANTINE, probability=0.95, action=Action.EXCLUDE, cause=Cause.INFRASTRUCTURE, retry=True)
    assert judge_group([dead, keep], [None, 1.0]).retry
    assert not judge_group([exclude, keep], [1.0, 1.0]).retry
    assert not judge_group([dead, override(0.0)], [None, 1.0]).retry, "an exploit is in it"
