"""The record family: messages name the values, and what is grave is called so."""

from __future__ import annotations

import pytest

from checks.record import (
    group_spans_several_tasks,
    record_breaks_its_rules,
    reward_outside_declared_range,
    same_steps_with_another_reward,
    token_arrays_do_not_match,
)
from checks.sums import reward_is_not_the_sum_of_its_parts, verifier_counts_contradict_themselves
from inspector.check import Declaration, History, Inconclusive, NotAssessed, Twin
from inspector.task import RewardDeclaration
from inspector.testing import trajectory


def declared(**reward):
    return Declaration(reward=RewardDeclaration(**reward))


def messages(found):
    return [finding.message for finding in found]


def test_an_untidy_record_is_not_grave():
    (finding,) = record_breaks_its_rules(trajectory(steps=[{"step_id": 4, "source": "user", "message": "hi"}]))
    assert finding.message == "1 defect of the record: $.trajectory.steps[0].step_id: 4 is not sequential; expected 1"
    assert not finding.grave


def test_many_defects_are_counted():
    odd = trajectory(steps=[{"step_id": at + 1, "source": "user", "message": "hi", "timestamp": "noon"} for at in range(9)])
    (finding,) = record_breaks_its_rules(odd, listed=2)
    assert finding.message.startswith("9 defects of the record: ")
    assert finding.message.endswith("; and 7 more")


def test_wrong_tokens_are_grave_and_told_once():
    odd = trajectory(tokens={"ids": "AAAAAAAAAAA=", "loss_mask": "AA=="})
    assert not list(record_breaks_its_rules(odd))
    (finding,) = token_arrays_do_not_match(odd)
    assert "2 ids, 1 loss_mask" in finding.message
    assert finding.grave


def test_a_reward_outside_names_both_numbers():
    (finding,) = reward_outside_declared_range(trajectory(reward=19.4), declared(min=0, max=1))
    assert finding.message == "the reward 19.4 is above the declared maximum 1"
    assert finding.grave


def test_an_undeclared_range_is_not_assessed():
    with pytest.raises(NotAssessed, match=r"reward.min and reward.max"):
        list(reward_outside_declared_range(trajectory(reward=-100), Declaration()))
    with pytest.raises(NotAssessed):
        list(reward_outside_declared_range(trajectory(reward=0.5), declared(max=1)))


def test_the_tasks_of_a_group_are_named():
    history = History(tasks_of_group={"run7-s12-g3-0": [f"t{at}" for at in range(9)]})
    (finding,) = group_spans_several_tasks(trajectory(), history, listed=2)
    assert finding.message == "the group 'run7-s12-g3' holds 10 tasks: 'fix-nginx', 't0' and 8 more"


def test_the_twins_are_named():
    history = History(twins={"run7-s12-g3-0": [Twin("a", 0.0), Twin("b", 1.0), Twin("c", None), Twin("d", 0.5)]})
    (finding,) = same_steps_with_another_reward(trajectory(), history)
    assert finding.message == "the same steps were rewarded with 1 here, but 'a' got 0, 'd' got 0.5"


def test_the_parts_are_written_out():
    rewards = {"tests": {"score": 1.0, "weight": 0.8}, "style": {"score": 0.0, "weight": 0.2}}
    (finding,) = reward_is_not_the_sum_of_its_parts(trajectory(reward=1.0, rewards=rewards), Declaration())
    assert finding.message == "the parts add up to 0.8 (tests 1 * 0.8 + style 0 * 0.2), but the reward is 1"
    assert finding.grave


@pytest.mark.parametrize(
    ("rewards", "declaration", "error", "reason"),
    [
        ({"tests": {"score": 1.0, "weight": 0.8}, "style": {"weight": 0.2}}, Declaration(), Inconclusive, "'style' weighs 0.2 and was not scored"),
        ({"tests": {"score": 1.0, "weight": 0.8}, "style": None}, Declaration(), Inconclusive, "its weight is not known"),
        ({"tests": {"score": 1.0}, "style": None}, declared(weights={"tests": 0.8, "style": 0.2}), Inconclusive, "'style' weighs 0.2"),
        ({"tests": {"score": 1.0}}, declared(weights={"tests": 0.8, "style": 0.2}), Inconclusive, "'style' weighs 0.2"),
        ({"tests": {"score": 1.0}}, Declaration(), NotAssessed, "reward.weights, for the part 'tests'"),
    ],
)
def test_an_unscored_part_is_not_a_zero(rewards, declaration, error, reason):
    with pytest.raises(error, match=reason):
        list(reward_is_not_the_sum_of_its_parts(trajectory(reward=1.0, rewards=rewards), declaration))


def test_an_unscored_part_of_unknown_weight_is_no_matter_where_the_rest_adds_up():
    rewards = {"tests": {"score": 1.0, "weight": 1.0}, "style": None}
    assert not list(reward_is_not_the_sum_of_its_parts(trajectory(reward=1.0, rewards=rewards), Declaration()))


def test_the_tolerance_follows_the_declared_range():
    percent = {"tests": {"score": 87.0, "weight": 1.0}}
    assert not list(reward_is_not_the_sum_of_its_parts(trajectory(reward=87.5, rewards=percent), declared(min=0, max=100)))
    fraction = {"tests": {"score": 0.002, "weight": 1.0}}
    assert messages(reward_is_not_the_sum_of_its_parts(trajectory(reward=0.003, rewards=fraction), declared(min=0, max=0.01)))


def test_counts_are_named():
    odd = trajectory(verifier={"tests": {"collected": 10, "passed": 12, "failed": 0}})
    assert messages(verifier_counts_contradict_themselves(odd)) == ["the verifier reports 12 passed and 0 failed of 10 collected tests"]
