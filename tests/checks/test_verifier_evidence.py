"""What a verifier's own evidence says against its pay."""

from __future__ import annotations

import pytest

from checks.runner_logs import last_summary
from checks.verifier_evidence import (
    paid_although_tests_did_not_run,
    paid_although_tests_failed,
    paid_with_fewer_tests_than_the_reference,
    unpaid_although_all_passed,
)
from inspector.check import Declaration, Inconclusive, NotAssessed
from inspector.task import RewardDeclaration
from inspector.testing import trajectory

PAID_AT_1 = Declaration(reward=RewardDeclaration(min=0, max=1, paid_at=1))


def judged(check, subject, declaration=PAID_AT_1):
    try:
        return "flagged" if list(check(subject, declaration)) else "clean"
    except (Inconclusive, NotAssessed) as reason:
        return type(reason).__name__


def episode(reward=1.0, exit_code=None, stdout=None, rewards=None, **counts):
    return trajectory(reward=reward, rewards=rewards, verifier={"exit_code": exit_code, "stdout": stdout, "tests": counts or None})


@pytest.mark.parametrize(
    ("log", "passed", "failed", "errors"),
    [
        ("==== 12 passed in 0.10s ====", 12, 0, 0),
        ("=========== 2 failed, 10 passed, 1 warning in 61.02s (0:01:01) ===========", 10, 2, 0),
        ("3 failed, 9 passed in 1.20s", 9, 3, 0),
        ("\x1b[31m==== \x1b[1m1 failed\x1b[0m, 2 passed in 0.1s ====\x1b[0m", 2, 1, 0),
        ("==== 1 error in 0.05s ====", 0, 0, 1),
        ("!!! Interrupted: 2 errors during collection !!!\n==== 2 errors in 0.11s ====", 0, 0, 2),
        ("==== no tests ran in 0.01s ====", 0, 0, 0),
        ("==== 4 deselected in 0.01s ====", 0, 0, 0),
        ("----\nRan 3 tests in 0.001s\n\nOK", 3, 0, 0),
        ("Ran 4 tests in 0.001s\n\nFAILED (failures=1, errors=1)", 2, 2, 0),
        ("Ran 4 tests in 0.001s\n\nOK (skipped=1)", 3, 0, 0),
        ("Ran 0 tests in 0.000s\n\nNO TESTS RAN", 0, 0, 0),
        ("Test Suites: 1 failed, 1 total\nTests:       1 failed, 4 passed, 5 total\nTime: 1 s", 4, 1, 0),
        ("ok  \texample.com/a\t0.012s\nFAIL\texample.com/b\t0.003s\nFAIL", 1, 1, 0),
        ("FAIL\texample.com/b [build failed]\nFAIL", 0, 0, 1),
        ("ok  \texample.com/a\t(cached)", 1, 0, 0),
        ("?   \texample.com/a\t[no test files]", 0, 0, 0),
        ("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s", 3, 2, 0),
        ("test result: ok. 3 passed; 0 failed; 0 ignored\n\n   Doc-tests x\n\ntest result: ok. 0 passed; 0 failed; 0 ignored", 3, 0, 0),
        ("==== 1 failed in 0.1s ====\nsome more\n==== 5 passed in 0.1s ====\nreward written", 5, 0, 0),
    ],
)
def test_runners_are_understood(log, passed, failed, errors):
    summary = last_summary(log)
    assert summary is not None
    assert summary[1:] == (passed, failed, errors)


@pytest.mark.parametrize(
    "log",
    [
        None,
        "",
        "3 failed logins in 5s were seen by the guard",
        "  ==== 1 failed in 0.1s ====",
        "> ==== 1 failed in 0.1s ====",
        "FAILED tests/test_a.py::test_b - assert 1 == 2",
        "OK",
        "FAILED (failures=1)",
        "FAIL",
        "==== 1 failed in 0.1s ====\n" + "noise\n" * 60,
        "=" * 5000 + " 1 failed in 0.1s " + "=" * 5000,
        "1 " * 4000,
    ],
)
def test_what_only_looks_like_a_summary_is_none(log):
    assert last_summary(log) is None


@pytest.mark.parametrize(
    ("subject", "outcome"),
    [
        (episode(collected=12, passed=10, failed=2), "flagged"),
        (episode(exit_code=1), "flagged"),
        (episode(exit_code=1, collected=12, passed=12, failed=0), "flagged"),
        (episode(exit_code=0, stdout="== 2 failed, 10 passed in 0.1s =="), "flagged"),
        (episode(exit_code=0, stdout="== 12 passed in 0.1s ==", collected=12, passed=10, failed=2), "flagged"),
        (episode(exit_code=0, stdout="== 12 passed in 0.1s =="), "clean"),
        (episode(exit_code=137), "clean"),
        (episode(exit_code=5), "clean"),
        (episode(reward=0.5, collected=12, passed=6, failed=6), "clean"),
        (episode(reward=0.0, collected=12, passed=6, failed=6), "clean"),
        (episode(reward=None, collected=12, passed=6, failed=6), "clean"),
        (episode(), "NotAssessed"),
        (trajectory(verifier=None), "NotAssessed"),
        (episode(stdout="the answer is 42"), "NotAssessed"),
    ],
)
def test_pay_against_failing_tests(subject, outcome):
    assert judged(paid_although_tests_failed, subject) == outcome


@pytest.mark.parametrize(
    ("reward", "rewards", "outcome"),
    [
        (0.75, None, "clean"),
        (0.5, None, "flagged"),
        (1.0, {"tests": {"score": 0.75}}, "flagged"),
        (0.8, {"tests": {"score": 0.75, "weight": 0.8}, "style": {"score": 1.0, "weight": 0.2}}, "clean"),
    ],
)
def test_without_a_declaration_partial_credit_is_known_by_its_share(reward, rewards, outcome):
    assert judged(paid_although_tests_failed, episode(reward, 1, rewards=rewards, collected=12, passed=9, failed=3), Declaration()) == outcome


def test_the_message_says_how_paid_was_read():
    (finding,) = paid_although_tests_failed(episode(collected=12, passed=10, failed=2), Declaration())
    assert finding.message == "the verifier paid 1 although 2 of 12 tests failed; paid is read as reward > 0, since the environment declares no paid_at"


@pytest.mark.parametrize(
    ("subject", "outcome"),
    [
        (episode(collected=0, passed=0, failed=0), "flagged"),
        (episode(collected=3, passed=3, errors=1), "flagged"),
        (episode(collected=3, passed=0, skipped=3), "flagged"),
        *((episode(exit_code=code), "flagged") for code in (2, 3, 4, 5)),
        (episode(exit_code=0, stdout="== no tests ran in 0.01s =="), "flagged"),
        (episode(exit_code=0, stdout="== 1 error in 0.01s =="), "flagged"),
        (episode(exit_code=0, stdout="== no tests ran in 0.01s ==", collected=3, passed=3), "clean"),
        (episode(exit_code=1), "clean"),
        (episode(exit_code=0, collected=3, passed=3), "clean"),
        (episode(exit_code=0, passed=3), "clean"),
        (episode(reward=0.0, collected=0), "clean"),
        (trajectory(verifier=None), "NotAssessed"),
    ],
)
def test_pay_against_tests_that_did_not_run(subject, outcome):
    assert judged(paid_although_tests_did_not_run, subject) == outcome


@pytest.mark.parametrize(
    ("subject", "outcome"),
    [
        (episode(0.0, 0, collected=3, passed=3), "flagged"),
        (episode(-0.2, 0, collected=3, passed=3), "flagged"),
        (episode(0.4, 0, collected=3, passed=3), "Inconclusive"),
        (episode(0.0, 1, collected=3, passed=3), "clean"),
        (episode(0.0, 0, collected=3, passed=3, errors=1), "clean"),
        (episode(0.0, 0, collected=3, passed=2), "clean"),
        (episode(0.0, 0, collected=0, passed=0), "clean"),
        (episode(0.0, 0, collected=3, passed=0, skipped=3), "clean"),
        (episode(1.0, 0, collected=3, passed=3), "clean"),
        (episode(None, 0, collected=3, passed=3), "clean"),
        (episode(0.0, 0, "== 3 passed in 0.1s =="), "NotAssessed"),
        (episode(0.0, 0, collected=3), "NotAssessed"),
        (trajectory(reward=0.0, verifier=None), "NotAssessed"),
        (episode(0.0, 0, rewards={"tests": {"score": 1.0}, "format": {"score": 0.0}}, collected=3, passed=3), "Inconclusive"),
        (episode(0.0, 0, rewards={"tests": {"score": 1.0}, "format": {"score": 1.0}}, collected=3, passed=3), "flagged"),
        (episode(0.8, 0, rewards={"tests": {"score": 1.0}, "format": {"score": 0.0}}, collected=3, passed=3), "clean"),
    ],
)
def test_no_pay_against_passing_tests(subject, outcome):
    assert judged(unpaid_although_all_passed, subject) == outcome


@pytest.mark.parametrize(
    ("subject", "reference", "outcome"),
    [
        (episode(collected=11, passed=11), 12, "flagged"),
        (episode(collected=12, passed=12), 12, "clean"),
        (episode(reward=0.0, collected=1), 12, "clean"),
        (episode(collected=11, passed=11), None, "NotAssessed"),
        (episode(passed=11), 12, "NotAssessed"),
    ],
)
def test_pay_against_the_reference(subject, reference, outcome):
    declaration = Declaration(reward=RewardDeclaration(paid_at=1), reference_tests=reference)
    assert judged(paid_with_fewer_tests_than_the_reference, subject, declaration) == outcome
