"""The local view follows the feed, and `admit` reads it without waiting."""

from __future__ import annotations

import threading
import time

import pytest

from inspector.client.view import View
from inspector.task import State
from inspector.verdict import Action, Decision, Mode, Scope
from tests.client.conftest import envelope, until

PLACE = {"environment": "acme/terminal", "version": "1"}


def quarantine(service, state="quarantined", **fields):
    return service.log(scope="environment_version", action="set_state", state=state, run="run7", **PLACE, **fields)


def test_a_quarantine_is_obeyed_and_lifted(enforcing, service):
    assert enforcing.admit("acme/terminal", "1")
    quarantine(service)
    until(lambda: not enforcing.admit("acme/terminal", "1"))
    assert enforcing.admit("acme/terminal", "2")
    quarantine(service, "probation", sampling_weight=0.25)
    until(lambda: enforcing.admit("acme/terminal", "1"))
    assert enforcing.admit("acme/terminal", "1").sampling_weight == 0.25
    quarantine(service, "retired")
    until(lambda: enforcing.admit("acme/terminal", "1").state is State.RETIRED)
    assert not enforcing.admit("acme/terminal", "1", "fix")


def test_a_task_is_refused_alone(enforcing, service):
    service.log(scope="task", action="set_state", state="quarantined", run="run7", task="fix", **PLACE)
    until(lambda: not enforcing.admit("acme/terminal", "1", "fix"))
    assert enforcing.admit("acme/terminal", "1", "other")
    assert enforcing.admit("acme/terminal", "1")


def test_observe_only_reports(client, service):
    one = client(run="run7")
    one.admit("acme/terminal", "1")
    quarantine(service, mode="observe")
    until(lambda: one.admit("acme/terminal", "1").would_refuse)
    assert one.admit("acme/terminal", "1")


def test_a_lowered_client_only_reports(client, service):
    service.run_modes["run7"] = "enforce"
    one = client(run="run7", mode="observe")
    one.admit("acme/terminal", "1")
    quarantine(service)
    until(lambda: one.admit("acme/terminal", "1").would_refuse)
    assert one.admit("acme/terminal", "1").mode is Mode.OBSERVE


def test_what_an_answer_says_of_the_feed_is_looked_up_at_once(client, service):
    """A long poll that hangs in some proxy does not delay what the answer to a post has already announced."""
    service.run_modes["run7"] = "enforce"
    service.fault, service.fault_path = "hang", "/v1/decisions"
    one = client(run="run7", poll_wait_s=60.0)
    one.admit("acme/terminal", "1")
    until(lambda: any(path == "/v1/decisions" for _, _, path in service.requests))
    quarantine(service)
    service.fault = None
    assert one.admit("acme/terminal", "1")
    one.decide(envelope(1), wait_s=5.0)
    until(lambda: not one.admit("acme/terminal", "1"), 5.0)


def test_late_decisions_stand_for_rows_in_a_buffer(enforcing, service):
    service.log(trajectory="t1", action="exclude", run="run7", final=True)
    service.log(scope="group", group="g2", action="exclude", run="run7")
    until(lambda: enforcing.stats.decisions == 2)
    assert enforcing.advice("t1").action is Action.EXCLUDE
    assert enforcing.advice("t8", "g2").binding
    assert enforcing.advice("t2") is None


def test_another_epoch_starts_from_the_snapshot(enforcing, service):
    quarantine(service)
    until(lambda: not enforcing.admit("acme/terminal", "1"))
    with service.lock:
        service.epoch, service.feed = "e2", []
        service.lock.notify_all()
    quarantine(service, "active")
    until(lambda: enforcing.state_dict()["epoch"] == "e2")
    assert enforcing.admit("acme/terminal", "1")
    assert enforcing.stats.snapshots == 2


def test_a_cursor_behind_the_horizon_starts_from_the_snapshot(client, service):
    service.horizon = 500
    quarantine(service)
    one = client(run="run7")
    one.load_state_dict({"epoch": "e1", "seq": 3})
    assert one.state_dict() == {"epoch": "e1", "seq": 3}
    until(lambda: one.admit("acme/terminal", "1").state is State.QUARANTINED)
    assert one.state_dict() == {"epoch": "e1", "seq": 501}


def test_a_cold_start_knows_what_the_last_process_knew(client, service, tmp_path):
    service.run_modes["run7"] = "enforce"
    quarantine(service)
    one = client(run="run7", spool_dir=tmp_path)
    until(lambda: not one.admit("acme/terminal", "1"))
    until(lambda: list(tmp_path.glob("view-*.json")))
    one.close(5)
    service.fault = "hang"
    cold = client(run="run7", spool_dir=tmp_path)
    assert not cold.admit("acme/terminal", "1")
    assert cold.state_dict() == {"epoch": "e1", "seq": 1}


def test_a_cold_start_knows_what_stood_of_single_trajectories_too(client, service, tmp_path):
    one = client(spool_dir=tmp_path)
    one.admit("a/b", "1")
    until(lambda: one.stats.snapshots == 1)
    service.log(trajectory="before")
    until(lambda: one.advice("before"))
    until(lambda: list(tmp_path.glob("view-*.json")))
    one.close(5)
    service.log(trajectory="meanwhile")
    service.standing = lambda: service.feed[:1]
    told = []
    cold = client(spool_dir=tmp_path, on_decision=lambda decision: told.append(decision.trajectory))
    cold.admit("a/b", "1")
    until(lambda: cold.advice("before") and cold.advice("meanwhile"))
    until(lambda: told == ["meanwhile"])


@pytest.mark.parametrize("page", [slice(1, None), slice(0, 3, 2), slice(0, 0)], ids=["its beginning", "its middle", "all"])
def test_a_page_in_which_something_is_missing_is_not_applied(client, service, page):
    one = client()
    one.admit("a/b", "1")
    until(lambda: one.stats.snapshots == 1)
    service.keeps = lambda entries: entries[page]
    with service.lock:
        for number in range(3):
            service.log(trajectory=f"t{number}")
    service.standing = lambda: service.feed
    until(lambda: one.stats.snapshots >= 2 and all(one.advice(f"t{number}") for number in range(3)))
    assert one.stats.decisions == 0


def test_what_is_not_understood_costs_only_itself(enforcing, service):
    service.log(scope="galaxy", action="explode")
    service.log(trajectory=7)
    quarantine(service)
    until(lambda: not enforcing.admit("acme/terminal", "1"))
    assert enforcing.stats.unreadable_decisions == 2
    assert enforcing.state_dict()["seq"] == 3


def test_every_decision_is_told_and_a_failing_hook_is_counted(client, service):
    told = []

    def hook(decision):
        told.append(decision.seq)
        if decision.seq == 1:
            raise RuntimeError("theirs")

    one = client(on_decision=hook)
    one.admit("a/b", "1")
    until(lambda: one.stats.snapshots == 1)
    for number in range(3):
        service.log(trajectory=f"t{number}")
    until(lambda: told == [1, 2, 3])
    until(lambda: one.stats.hook_failures == 1)


@pytest.mark.parametrize("fault", [500, "reset", "html", 403])
def test_a_feed_that_fails_is_followed_again(client, service, fault):
    service.fault, service.fault_path = fault, "/v1/decisions"
    one = client(run="run7")
    one.admit("acme/terminal", "1")
    until(lambda: one.stats.trouble)
    quarantine(service)
    service.fault = None
    until(lambda: one.admit("acme/terminal", "1").would_refuse)


def test_many_pages_are_applied_in_order(client, service):
    one = client()
    one.admit("a/b", "1")
    until(lambda: one.stats.snapshots == 1)
    with service.lock:
        for number in range(2500):
            service.log(trajectory=f"t{number % 100}", reward_override=float(number), action="override_reward")
    until(lambda: one.stats.decisions == 2500)
    assert one.advice("t99").reward_override == 2499.0


def test_admit_is_fast_while_the_view_is_written():
    view = View()
    view.hear_mode("run7", Mode.ENFORCE)
    stop = threading.Event()

    def write():
        for seq in iter(range(1, 10**9)):
            if stop.is_set():
                return
            view.apply(
                Decision(seq=seq, scope=Scope.ENVIRONMENT_VERSION, action=Action.SET_STATE, environment=f"e/{seq % 1000}", version="1", state=State.QUARANTINED)
            )
            if seq % 200 == 0:
                time.sleep(0.001)

    writer = threading.Thread(target=write)
    writer.start()
    took = []
    for number in range(5000):
        began = time.perf_counter()
        view.admit(f"e/{number % 1000}", "1", "task", "run7")
        took.append(time.perf_counter() - began)
    stop.set()
    writer.join()
    assert sorted(took)[int(0.99 * len(took))] < 0.001


def test_the_stricter_of_two_states_counts():
    view = View()
    for task, state, weight in ((None, "probation", 0.5), ("a", "quarantined", None), ("b", "probation", 0.5)):
        view.apply(
            Decision(
                seq=1, scope=Scope.TASK if task else Scope.ENVIRONMENT_VERSION, action=Action.SET_STATE, environment="e/x", version="1", task=task,
                state=State(state), sampling_weight=weight,
            )
        )  # fmt: skip
    assert [view.admit("e/x", "1", task, None).sampling_weight for task in (None, "a", "b", "c")] == [0.5, 0.0, 0.25, 0.5]
    assert view.admit("e/x", "1", "a", None).state is State.QUARANTINED


def test_old_decisions_of_a_snapshot_do_not_say_in_which_mode_a_run_is():
    view = View()
    view.hear_mode("run7", Mode.ENFORCE)
    old = Decision(seq=3, scope=Scope.TRAJECTORY, action=Action.EXCLUDE, trajectory="a", run="run7", mode=Mode.OBSERVE)
    view.restart("e", 4, [], [old])
    assert view.mode("run7") is Mode.ENFORCE
    assert view.standing("a") == old


def test_a_group_of_another_run_may_have_the_same_name():
    view = View()
    view.apply(Decision(seq=1, scope=Scope.GROUP, action=Action.EXCLUDE, trajectory="a", group="g", run="run1"))
    assert view.standing("a", "g") is not None
    assert view.standing("of-run2", "g") is None
