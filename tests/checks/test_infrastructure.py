"""Whose fault a zero is: each row of the table in `checks/infrastructure.py`."""

from __future__ import annotations

import pytest

from checks.infrastructure import broken_episode_scored_zero, ending_contradicts_itself, interrupted_episode_scored_zero
from checks.verifier_crash import crashed_verifier_scored
from inspector.check import Declaration, Inconclusive
from inspector.task import LimitsDeclaration
from inspector.testing import trajectory

FAILED = {"exit_code": 1, "tests": {"collected": 2, "passed": 1, "failed": 1}}


def episode(boundary=None, reason=None, verifier=None, reward=0.0, kind="Broke", errors=True, **fields):
    listed = [{"type": kind, "boundary": boundary, "message": "it broke"}] if errors else []
    return trajectory(reward=reward, verifier=verifier, termination={"reason": reason, **fields}, errors=listed)


def judged(check, subject, *needs):
    try:
        return "flagged" if list(check(subject, *needs)) else "clean"
    except Inconclusive:
        return "inconclusive"


@pytest.mark.parametrize("boundary", ["provider", "harness", "sandbox", "task"])
@pytest.mark.parametrize(
    ("reason", "verifier", "outcome"),
    [
        ("error", None, "flagged"),
        ("error", FAILED, "flagged"),
        (None, FAILED, "flagged"),
        ("timeout", None, "flagged"),
        ("cancelled", None, "flagged"),
        ("submitted", FAILED, "clean"),
        ("Completed", FAILED, "clean"),
        ("max_steps", FAILED, "clean"),
        ("completed", None, "inconclusive"),
        ("max_tokens", None, "inconclusive"),
        ("the harness gave up", None, "flagged"),
        ("no more turns", FAILED, "inconclusive"),
    ],
)
def test_an_error_outside_the_policy_excuses_what_it_cut_short(boundary, reason, verifier, outcome):
    assert judged(broken_episode_scored_zero, episode(boundary, reason, verifier), Declaration()) == outcome


@pytest.mark.parametrize("reward", [None, 1.0, 0.3, -0.5])
def test_only_a_zero_is_asked_about(reward):
    assert judged(broken_episode_scored_zero, episode("sandbox", "error", reward=reward), Declaration()) == "clean"


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("ContextLengthExceeded", "clean"),
        ("MaxTokensReached", "clean"),
        ("ContentFilter", "clean"),
        ("ModelRefusal", "clean"),
        ("ConnectionRefused", "flagged"),
        ("MaxRetriesExceeded", "flagged"),
    ],
)
def test_a_limit_of_the_policys_own_excuses_nothing(kind, outcome):
    assert judged(broken_episode_scored_zero, episode("provider", "error", kind=kind), Declaration()) == outcome


@pytest.mark.parametrize(
    ("boundary", "reason", "errors", "verifier", "outcome"),
    [
        ("tool", "error", True, None, "clean"),
        ("verifier", "error", True, None, "clean"),
        (None, "error", True, None, "inconclusive"),
        (None, "submitted", True, None, "clean"),
        (None, "error", False, None, "flagged"),
        (None, "error", False, FAILED, "inconclusive"),
        (None, "submitted", False, None, "clean"),
    ],
)
def test_an_error_of_unknown_origin_is_not_held_against_anybody(boundary, reason, errors, verifier, outcome):
    assert judged(broken_episode_scored_zero, episode(boundary, reason, verifier, errors=errors), Declaration()) == outcome


def test_the_message_names_error_boundary_reason_and_reward():
    (finding,) = broken_episode_scored_zero(episode("sandbox", "error", kind="SandboxDied"), Declaration())
    assert finding.message == "SandboxDied at the boundary sandbox broke the episode (reason 'error'), yet the reward is 0 and not null"


@pytest.mark.parametrize(
    ("reason", "timed_out", "verifier", "outcome"),
    [
        ("timeout", None, None, "flagged"),
        ("timeout", True, FAILED, "clean"),
        ("agent stopped", True, None, "flagged"),
        ("max_steps", False, None, "clean"),
        ("max_tokens", None, None, "clean"),
        ("cancelled", None, FAILED, "flagged"),
        ("timeout", True, {"timed_out": True, "exit_code": 124}, "flagged"),
    ],
)
def test_a_zero_for_an_interrupted_episode(reason, timed_out, verifier, outcome):
    assert judged(interrupted_episode_scored_zero, episode(None, reason, verifier, timed_out=timed_out, truncated=True), Declaration()) == outcome


@pytest.mark.parametrize("ended", ["10:30:05", "10:20:00", None])
@pytest.mark.parametrize(("verifier", "outcome"), [(None, "flagged"), ({"stdout": "collecting ..."}, "flagged"), (FAILED, "clean")])
def test_a_declared_limit_excuses_no_zero_that_nobody_verified(ended, verifier, outcome):
    times = {"started_at": "2026-11-30T10:00:00Z", "ended_at": ended and f"2026-11-30T{ended}Z"}
    subject = trajectory(reward=0.0, verifier=verifier, termination={"reason": "timeout"}, **times)
    declaration = Declaration(limits=LimitsDeclaration(seconds=1800))
    assert judged(interrupted_episode_scored_zero, subject, declaration) == outcome


@pytest.mark.parametrize(
    ("verifier", "boundary", "outcome"),
    [
        ({"timed_out": True}, None, "flagged"),
        *(({"exit_code": code}, None, "flagged") for code in (-9, 124, 134, 137, 139)),
        *(({"exit_code": code}, None, "clean") for code in (0, 1, 2, 5, 127)),
        (None, "verifier", "flagged"),
        ({"stdout": "Traceback"}, "verifier", "flagged"),
        (FAILED, "verifier", "clean"),
        (None, "sandbox", "clean"),
    ],
)
@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_a_verifier_that_did_not_finish_gives_no_reward(verifier, boundary, outcome, reward):
    assert judged(crashed_verifier_scored, episode(boundary, "submitted", verifier, reward)) == outcome
    assert judged(crashed_verifier_scored, episode(boundary, "submitted", verifier, reward=None)) == "clean"


def test_a_crash_is_named():
    told = [
        next(iter(crashed_verifier_scored(trajectory(reward=0.0, verifier=report)))).message
        for report in ({"exit_code": -9}, {"timed_out": True, "duration_s": 600})
    ]
    assert told == [
        "the verifier was ended by signal 9 (exit code -9), yet the reward is 0 and not null",
        "the verifier timed out after 600 s, yet the reward is 0 and not null",
    ]


def test_a_contradictory_ending_is_named():
    (finding,) = ending_contradicts_itself(trajectory(termination={"reason": "completed", "truncated": True, "timed_out": True}))
    assert finding.message == "the reason is 'completed', yet truncated and timed_out are true"
