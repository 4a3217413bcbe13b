"""`decide` answers within its deadline whatever the service does, and `apply` turns the advice into rewards."""

from __future__ import annotations

import socket
import threading
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.client import Advice, apply
from inspector.verdict import Action, Cause, Mode
from tests.client.conftest import envelope, until

EXCLUDE = {"action": "exclude", "cause": "infrastructure", "final": True, "retry": True}
OVERRIDE = {"action": "override_reward", "reward_override": -1.0, "cause": "policy_exploit", "final": True}
HOLD = {"action": "hold", "until": "2026-11-30T10:00:30Z"}
SLACK_S = 0.25  # what a loaded machine may add to a thread's waking


def test_each_trajectory_gets_its_advice(client, service):
    service.run_modes["run7"] = "enforce"
    service.rule = lambda line: {"t1": EXCLUDE, "t2": OVERRIDE}.get(line["id"], {"action": "keep", "final": False})
    one = client(run="run7")
    decisions = one.decide([envelope(number) for number in range(3)], wait_s=5.0)
    assert [advice.action for advice in decisions.advices] == [Action.KEEP, Action.EXCLUDE, Action.OVERRIDE_REWARD]
    assert decisions["t1"] == Advice(id="t1", action=Action.EXCLUDE, cause=Cause.INFRASTRUCTURE, final=True, retry=True, mode=Mode.ENFORCE, group="g0")
    assert (decisions["t2"].reward_override, decisions["t2"].binding, decisions.unaudited) == (-1.0, True, 0)
    assert apply(decisions.advices, [1.0, 0.0, 1.0], ["g0"] * 3) == ([1.0, None, -1.0], [True, False, True])


@pytest.mark.parametrize("fault", ["hang", "drip", "body_drip", "reset", "html", 500, 503, 429, 401])
@pytest.mark.parametrize("fail_mode", ["open", "closed"])
def test_the_deadline_holds_under_every_fault(client, service, fault, fail_mode):
    service.fault = fault
    one = client(fail_mode=fail_mode, deadline_s=0.3)
    one._ensure()
    began = time.monotonic()
    decisions = one.decide([envelope(number) for number in range(8)])
    assert time.monotonic() - began < 0.3 + SLACK_S
    assert decisions.unaudited == 8
    assert {advice.action for advice in decisions.advices} == {Action.KEEP if fail_mode == "open" else Action.EXCLUDE}


def test_what_was_not_judged_in_time_is_audited_all_the_same(client, service):
    service.fault = "hang"
    one = client(deadline_s=0.1, post_timeout_s=0.2)
    assert one.decide([envelope(0), envelope(1)]).unaudited == 2
    assert one.stats.deadline_exceeded == 1
    service.fault = None
    until(lambda: service.order == ["t0", "t1"])


def test_a_service_that_is_away_costs_no_deadline_any_more(client, service):
    service.fault = "hang"
    one = client(deadline_s=0.1)
    for _ in range(6):
        one.decide(envelope(0))
    began = time.monotonic()
    for _ in range(20):
        assert one.decide(envelope(0))["t0"].reason == "the service is away"
    assert time.monotonic() - began < 0.5


def test_nobody_listening_and_a_name_that_does_not_resolve(client, monkeypatch):
    hanging = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: hanging.wait(30) and [])
    for address in ("http://127.0.0.1:9", "http://inspector.invalid:8642"):
        began = time.monotonic()
        assert client(address, deadline_s=0.2).decide(envelope(0)).unaudited == 1
        assert time.monotonic() - began < 0.2 + SLACK_S
    hanging.set()


def test_a_pending_decision_is_looked_up_until_the_time_is_over(client, service):
    asked = []
    service.rule = lambda line: {"action": "keep"} if asked.append(line["id"]) or len(asked) > 1 else None
    assert client().decide(envelope(0), wait_s=5.0).unaudited == 0
    assert asked == ["t0", "t0"]


def test_what_stays_pending_is_unaudited(client, service):
    service.rule = lambda line: None
    assert client().decide(envelope(0), wait_s=0.3)["t0"].unaudited


@pytest.mark.parametrize(("fail_mode", "action"), [("open", Action.KEEP), ("closed", Action.EXCLUDE)])
def test_a_hold_follows_the_fail_mode(client, service, fail_mode, action):
    service.run_modes["run7"] = "enforce"
    service.rule = lambda line: HOLD if line["id"] == "t1" else {"action": "keep", "final": True}
    decisions = client(run="run7", fail_mode=fail_mode).decide([envelope(number) for number in (0, 1, 4)], wait_s=5.0)
    assert (decisions["t1"].action, decisions["t1"].held, decisions["t1"].until is not None) == (action, True, True)
    assert decisions["t0"].action is action  # of the same group
    assert decisions["t4"].action is Action.KEEP


def test_words_of_a_newer_service_are_no_reason_to_fail(client, service):
    service.rule = lambda line: {"action": "teleport", "cause": "gremlins", "mode": "strict"} if line["id"] == "t0" else {"action": "keep", "cause": "gremlins"}
    decisions = client().decide([envelope(0), envelope(1)], wait_s=5.0)
    assert (decisions["t0"].unaudited, decisions["t1"].unaudited, decisions["t1"].cause) == (True, False, None)


@pytest.mark.parametrize("lowered", [None, "observe"])
def test_observe_changes_nothing(client, service, lowered):
    service.run_modes["run7"] = "enforce" if lowered else "observe"
    service.rule = lambda line: EXCLUDE
    decisions = client(run="run7", mode=lowered, fail_mode="closed").decide([envelope(number) for number in range(4)], wait_s=5.0)
    assert {(advice.action, advice.mode) for advice in decisions.advices} == {(Action.EXCLUDE, Mode.OBSERVE)}
    assert apply(decisions.advices, [1.0, None, 0.0, 2.0], ["g"] * 4) == ([1.0, None, 0.0, 2.0], [True] * 4)


def test_an_observed_run_stays_observed_when_the_service_goes_away(client, service):
    one = client(run="run7", fail_mode="closed", deadline_s=0.2)
    assert one.decide(envelope(0), wait_s=5.0).unaudited == 0
    service.fault = "hang"
    decisions = one.decide(envelope(1))
    assert decisions.unaudited == 1
    assert apply(decisions.advices, [1.0], ["g0"]) == ([1.0], [True])


def test_lines_are_asked_by_the_id_in_them(client, service):
    service.rule = lambda line: EXCLUDE
    assert client().decide(msgspec.json.encode(envelope(3)), wait_s=5.0)["t3"].action is Action.EXCLUDE


def test_a_thousand_at_once(client, service):
    decisions = client().decide([envelope(number) for number in range(1024)], wait_s=20.0)
    assert ([advice.id for advice in decisions.advices], decisions.unaudited) == ([f"t{number}" for number in range(1024)], 0)


def test_nothing_to_decide_is_decided(client):
    assert len(client().decide([])) == 0


actions = st.sampled_from([Action.KEEP, Action.EXCLUDE, Action.OVERRIDE_REWARD])
advices = st.builds(
    Advice, id=st.just("x"), action=actions, reward_override=st.floats(-1, 1), unaudited=st.booleans(), mode=st.sampled_from(Mode), enforced=st.booleans()
)
rows = st.lists(st.tuples(advices, st.none() | st.floats(-1, 1), st.integers(0, 3)), max_size=16)


@given(rows)
def test_excluded_rows_and_no_others_lose_their_reward(table):
    given_advices, rewards, groups = ([row[column] for row in table] for column in range(3))
    applied, mask = apply(given_advices, rewards, groups)
    closed = {group for advice, _, group in table if advice.binding and advice.unaudited and advice.action is Action.EXCLUDE}
    for (advice, reward, group), now, used in zip(table, applied, mask, strict=True):
        assert used == (group not in closed and not (advice.binding and advice.action is Action.EXCLUDE))
        if not used:
            assert now is None
        elif advice.binding and advice.action is Action.OVERRIDE_REWARD:
            assert now == advice.reward_override
        else:
            assert now is reward


@given(rows)
def test_applying_in_observe_mode_is_the_identity(table):
    observed = [msgspec.structs.replace(row[0], mode=Mode.OBSERVE) for row in table]
    rewards = [row[1] for row in table]
    assert apply(observed, rewards, [row[2] for row in table]) == (rewards, [True] * len(table))


def test_rows_that_do_not_align_are_an_error():
    with pytest.raises(ValueError, match="do not align"):
        apply([], [1.0], [])
