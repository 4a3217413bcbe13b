"""Advice to go back as a trainer hears it: while it stands, only where it binds, and not once it went back."""

from __future__ import annotations

import pickle

import pytest

from inspector.client.view import View
from inspector.verdict import Action, Decision, Mode, Rollback, Scope
from tests.client.conftest import until

ADVICE = {
    "policy_version": 10,
    "checkpoint": "/saved/10",
    "last_clean": 12,
    "first_step": 13,
    "last_step": 15,
    "updates": 2,
    "undone": 3,
    "rows": 9,
    "share": 0.4,
}


def advise(service, attempt="", **fields):
    return service.log(scope="run", action="advise_rollback", run="run7", cause="policy_exploit", rollback={**ADVICE, "attempt": attempt}, **fields)


def attempt_of(one, service):
    """After a step from version 12 was told."""
    one.report_step(13, policy_before=12, policy_after=13)
    until(lambda: service.steps)
    return service.steps[-1][2]["attempt"]


def test_it_is_pending_until_the_service_takes_it_back(enforcing, service):
    assert enforcing.rollback_advice() is None
    advise(service, attempt_of(enforcing, service), reasons=["too much"])
    until(enforcing.rollback_advice)
    told = enforcing.rollback_advice()
    assert (told.run, told.policy_version, told.checkpoint, told.last_clean, told.share, told.reason) == ("run7", 10, "/saved/10", 12, 0.4, "too much")
    assert enforcing.rollback_advice("another") is None
    service.log(scope="run", action="keep", run="run7")
    until(lambda: enforcing.rollback_advice() is None)


def test_whoever_goes_on_from_a_clean_version_has_followed_it(enforcing, service):
    advise(service, attempt_of(enforcing, service))
    until(enforcing.rollback_advice)
    enforcing.resumes_from(14)
    assert enforcing.rollback_advice() is not None, "that version is not clean"
    enforcing.resumes_from(12)
    assert enforcing.rollback_advice() is None


def test_a_step_from_an_earlier_version_says_so_too(enforcing, service):
    first = attempt_of(enforcing, service)
    advise(service, first)
    until(enforcing.rollback_advice)
    enforcing.report_step(11, policy_before=10, policy_after=11)
    assert enforcing.rollback_advice() is None
    until(lambda: len(service.steps) == 2)
    assert service.steps[-1][2]["attempt"] != first


def test_what_this_life_learnt_after_going_back_is_advised_anew(enforcing, service):
    enforcing.resumes_from(10)
    enforcing.report_step(11, policy_before=10, policy_after=11)
    until(lambda: service.steps)
    advise(service, service.steps[-1][2]["attempt"])
    until(enforcing.rollback_advice)


def test_a_process_that_did_not_say_where_it_began_hears_it(enforcing, service):
    advise(service, "of another process")
    until(enforcing.rollback_advice)
    enforcing.report_step(20, policy_before=19, policy_after=20)
    assert enforcing.rollback_advice() is not None, "it goes on where it was"


def test_an_observed_run_is_not_told_to_go_back(client, service):
    one = client(run="run7")
    one.admit("acme/terminal", "1")
    until(lambda: one.stats.snapshots == 1)
    advise(service, mode="observe")
    until(lambda: one.view.rollback("run7"))
    assert one.rollback_advice() is None
    with pytest.raises(ValueError, match="names one"):
        client().rollback_advice()


def decision(seq: int, action: Action = Action.ADVISE_ROLLBACK) -> Decision:
    return Decision(seq=seq, scope=Scope.RUN, action=action, run="run7", mode=Mode.ENFORCE, rollback=Rollback(**ADVICE))


def test_it_survives_a_cold_start_and_a_snapshot_replaces_it():
    view = View()
    view.apply(decision(3))
    view.reach("e", 3)
    other = View()
    other.restored(pickle.loads(pickle.dumps(view.saved())))
    assert other.rollback("run7") == decision(3)
    other.apply(decision(2, Action.KEEP))
    assert other.rollback("run7"), "what is older changes nothing"
    other.restart("f", 1, [], [])
    assert other.rollback("run7") is None
    other.restart("f", 5, [], [decision(5)])
    assert other.rollback("run7")
