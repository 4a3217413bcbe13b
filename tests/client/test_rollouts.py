"""What adapters share: a batch is posted, and learnt from as the advice says; updates are reported behind the trainer's back."""

from __future__ import annotations

import json

import pytest

from inspector.client.adapters.rollouts import Place, Rollout, Rollouts
from inspector.verdict import Action
from tests.client.conftest import until

HERE = Place("acme/sums", "1", "add")
GONE = Place("acme/sums", "1", "gone")


def batch(rewards, *, place=HERE, size=2, **fields):
    return [Rollout(place, f"what is {at}?", f"it is {at}", reward, {"tests": reward}, at // size, **fields) for at, reward in enumerate(rewards)]


def rollouts(client, **options):
    return Rollouts(client(run="run7", deadline_s=5.0), run="run7", trainer="trl", trainer_version="1.16", **options)


def test_rows_are_posted_in_their_groups_and_learnt_from_as_advised(client, service):
    service.run_modes["run7"] = "enforce"
    rules = {0: {"action": "exclude", "final": True}, 3: {"action": "override_reward", "reward_override": -1.0, "final": True}}
    service.rule = lambda line: rules.get(int(line["id"].rpartition("-")[2]), {"action": "keep", "final": True})
    learnt = rollouts(client).learn(batch([1.0, 0.0, None, 1.0]), step=4)
    assert learnt.rewards == [None, 0.0, None, -1.0]
    assert learnt.mask == [False, True, True, True]
    assert learnt.used() == [{"id": learnt.ids[1], "weight": 1.0, "reward": 0.0}, {"id": learnt.ids[3], "weight": 1.0, "reward": -1.0}]
    assert (learnt.excluded, learnt.share(Action.OVERRIDE_REWARD)) == (0.25, 0.25)


def test_what_is_posted_says_where_it_came_from(client, service):
    one = rollouts(client, model="toy")
    one.learn(batch([1.0, 0.5], details={"errors": [{"type": "Gone", "boundary": "sandbox", "message": "m"}]}), step=4)
    until(lambda: len(service.lines) == 2)

    posted = [json.loads(line) for line in service.lines.values()]
    assert [p["group"]["index"] for p in posted] == [0, 1]
    assert {(p["group"]["size"], p["run"]["step"], p["task"]["id"], p["errors"][0]["type"]) for p in posted} == {(2, 4, "add", "Gone")}
    assert [step["message"] for step in posted[1]["trajectory"]["steps"]] == ["what is 1?", "it is 1"]
    assert posted[1]["rewards"] == {"tests": {"score": 0.5}}


def test_ids_never_repeat_however_often_a_step_is_made_again(client):
    ids = [id_ for _ in range(2) for one in [rollouts(client)] for _ in range(2) for id_ in one.learn(batch([1.0, 1.0]), step=4).ids]
    assert len(set(ids)) == 8


def test_whole_groups_are_drawn_for_an_audit(client, service):
    one = rollouts(client, audit_rate=0.3, seed=1)
    learnt = one.learn(batch([1.0] * 200), step=1)
    posted = [not advice.unaudited for advice in learnt.advices]
    assert posted[::2] == posted[1::2]
    assert 10 < sum(posted[::2]) < 60
    assert learnt.mask == [True] * 200
    with pytest.raises(ValueError, match=r"audit_rate=0"):
        rollouts(client, audit_rate=0)


def test_rows_of_what_was_quarantined_since_they_were_sampled_are_out(client, service):
    service.run_modes["run7"] = "enforce"
    one = rollouts(client)
    one.learn(batch([1.0, 1.0]), step=1)
    service.log(scope="task", action="set_state", environment="acme/sums", version="1", task="gone", state="quarantined")
    until(lambda: not one.client.admit(*GONE))
    learnt = one.learn(batch([1.0, 1.0], place=GONE), step=2)
    assert (learnt.rewards, learnt.mask) == ([None, None], [False, False])


@pytest.mark.parametrize("fault", ["hang", 503])
def test_a_service_that_is_away_costs_the_deadline_and_changes_nothing(client, service, fault):
    service.fault = fault
    one = Rollouts(client(run="run7", deadline_s=0.2), run="run7", trainer="trl", trainer_version="1")
    learnt = one.learn(batch([1.0, 0.0]), step=1)
    assert (learnt.rewards, learnt.mask) == ([1.0, 0.0], [True, True])
    assert all(advice.unaudited for advice in learnt.advices)


def test_updates_are_reported_in_their_order_once_the_service_is_there(client, service):
    service.fault = 503
    one = client(run="run7")
    for step in (1, 2):
        one.report_step(step, policy_before=step - 1, policy_after=step, used=[{"id": "a", "weight": 1.0, "reward": 0.0}])
    service.fault = None
    until(lambda: len(service.steps) == 2)
    assert [(run, step) for run, step, _ in service.steps] == [("run7", 1), ("run7", 2)]
    until(lambda: one.stats.steps == 2)
    assert one.close()


def test_a_report_that_is_refused_is_counted_with_the_reason_and_stops_nothing(client, service):
    one = client(run="run7")
    service.fault = 409
    one.report_step(1, policy_before=0, policy_after=1)
    until(lambda: one.stats.steps_lost == 1)
    service.fault = None
    one.report_step(2, policy_before=1, policy_after=2)
    until(lambda: one.stats.steps == 1)
    assert "step 1 of run7" in one.stats.reasons[0]
    with pytest.raises(ValueError, match="names one"):
        client().report_step(1, policy_before=0, policy_after=1)
