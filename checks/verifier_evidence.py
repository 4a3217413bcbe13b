"""The verifier's own evidence contradicts what it paid.

Counts and exit codes that the harness collected go before the log, which the agent's code can write to: the log may show
that a payment was wrong, and is never taken as proof that one was due.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from msgspec import Meta

from checks.runner_logs import Summary, last_summary
from inspector.check import Cause, Declaration, Finding, Inconclusive, NotAssessed, Tier, Trajectory, check, envelope, example
from inspector.trajectory import TestCounts, VerifierReport

# What pytest exits with when it was interrupted, broke, was called wrongly, or found no test; 1 is failing tests.
NOTHING_RAN = {2: "interrupted, as by an error at collection", 3: "broken inside", 4: "called wrongly", 5: "no test collected"}
FAILURES = range(1, 124)  # above are time-outs and signals: the verifier did not judge, it crashed

Share = Annotated[float, Meta(ge=0, le=1)]

_PAID_AT_1 = {"reward": {"min": 0, "max": 1, "paid_at": 1}}
_PAID_AT_HALF = {"reward": {"min": 0, "max": 1, "paid_at": 0.5}}


def _report(exit_code: int | None = None, stdout: str | None = None, **counts: int) -> dict[str, Any]:
    return {"exit_code": exit_code, "stdout": stdout, "tests": counts or None}


def _paid(report: dict[str, Any] | None, reward: float = 1.0, **overrides: Any) -> dict[str, Any]:
    return envelope(reward=reward, verifier=report, **overrides)


_NESTED = "test_runner.py::test_reports_failures\n==== 1 failed, 2 passed in 0.02s ====\nPASSED\n\n==== 12 passed in 1.10s ====\n"


@check(
    version=1,
    tier=Tier.EVIDENCE,
    cause=Cause.VERIFIER_DEFECT,
    clean=[
        example("partial credit below what counts as paid", _paid(_report(1, collected=12, passed=6, failed=6), reward=0.5), declaration=_PAID_AT_1),
        example("undeclared, and the reward is the share of tests that passed", _paid(_report(1, collected=12, passed=9, failed=3), reward=0.75)),
        example("the agent's work prints a failing run, the verifier's own passes after it", _paid(_report(0, _NESTED, collected=12, passed=12, failed=0))),
        example(
            "the word FAILED in a passing log", _paid(_report(0, "FAILED login is logged once\n3 failed attempts in 5s lock the account\n12 passed in 0.40s\n"))
        ),
        example("unpaid with failing tests is as it should be", _paid(_report(1, collected=12, passed=10, failed=2), reward=0.0)),
    ],
    flagged=[
        example("two of twelve tests failed, and all was paid", _paid(_report(1, collected=12, passed=10, failed=2))),
        example("paid in full by declaration", _paid(_report(0, collected=12, passed=11, failed=1)), declaration=_PAID_AT_1),
        example("the exit code alone says so", _paid(_report(1))),
        example("the log alone says so", _paid(_report(0, "...F\n=== short test summary info ===\n=== 1 failed, 11 passed in 2.31s ===\n"))),
    ],
)
def paid_although_tests_failed(trajectory: Trajectory, declaration: Declaration, *, tolerance: Share = 0.02) -> Iterator[Finding]:
    """The verifier paid although its counts, its exit code or the last lines of its log show failing tests.

    The policy learns that unfinished work is enough. A reward, or a part of it, that is the share of the tests that passed
    is partial credit and passes; `tolerance` is how far it may be from that share.
    """
    if not declaration.pays(trajectory.reward):
        return
    report, summary = evidence(trajectory)
    if not (failure := _failure(report, summary)):
        return
    share = _passed_share(report.tests, summary)
    if share is None or not _is_partial_credit(trajectory, declaration, share, tolerance):
        yield Finding(message=f"the verifier paid {trajectory.reward:g} although {failure}; {declaration.reading_of_paid}")


@check(
    version=1,
    tier=Tier.EVIDENCE,
    cause=Cause.VERIFIER_DEFECT,
    clean=[
        example("one test was skipped, the others ran", _paid(_report(0, collected=12, passed=11, failed=0, skipped=1))),
        example("no test collected and not paid", _paid(_report(5, collected=0), reward=0.0)),
        example("expected failures are tests that ran", _paid(_report(0, "== 3 xfailed in 0.30s =="))),
    ],
    flagged=[
        example("no test was collected", _paid(_report(0, collected=0, passed=0, failed=0))),
        example("an error at collection", _paid(_report(0, collected=8, passed=8, failed=0, errors=1))),
        example("pytest was interrupted", _paid(_report(2))),
        example("every test was skipped", _paid(_report(0, collected=12, passed=0, failed=0, skipped=12)), declaration=_PAID_AT_1),
        example("the log alone says so", _paid(_report(0, "collected 0 items\n\n===== no tests ran in 0.01s =====\n"))),
    ],
)
def paid_although_tests_did_not_run(trajectory: Trajectory, declaration: Declaration) -> Iterator[Finding]:
    """The verifier paid although there was an error at collection, or no test was collected or run.

    Nothing was verified. An empty test run that counts as success is also the first thing a policy learns to bring about.
    """
    if not declaration.pays(trajectory.reward):
        return
    report, summary = evidence(trajectory)
    if reason := did_not_run(report, summary):
        yield Finding(message=f"the verifier paid {trajectory.reward:g} although {reason}; {declaration.reading_of_paid}")


@check(
    version=1,
    tier=Tier.EVIDENCE,
    cause=Cause.VERIFIER_DEFECT,
    clean=[
        example("one of twelve tests failed", _paid(_report(1, collected=12, passed=11, failed=1), reward=0.0)),
        example("not scored is not unpaid", envelope(reward=None)),
        example("four tests fewer than the reference has", _paid(_report(0, collected=8, passed=8), reward=0.0), declaration={"reference_tests": 12}),
        example("the agent's code prints success, and the counts are missing", _paid(_report(1, "==== 12 passed in 0.10s ====\n"), reward=0.0)),
        example(
            "another part of the reward lies between",
            _paid(_report(0, collected=12, passed=12), reward=0.8, rewards={"tests": {"score": 1, "weight": 0.8}, "style": {"score": 0, "weight": 0.2}}),
            declaration=_PAID_AT_1,
        ),
        example("over its step limit, which the task may not pay", _paid(_report(0, collected=1, passed=1), reward=0.0, termination={"truncated": True})),
    ],
    flagged=[
        example("all twelve passed, and nothing was paid", _paid(_report(0, collected=12, passed=12, failed=0), reward=0.0)),
        example(
            "all that were not skipped passed",
            _paid(_report(0, collected=12, passed=11, failed=0, skipped=1), reward=-1.0),
            declaration={"reward": {"min": -1}},
        ),
        example("the only part is the tests'", _paid(_report(0, collected=3, passed=3), reward=0.0, rewards={"tests": {"score": 0.0, "weight": 1.0}})),
    ],
)
def unpaid_although_all_passed(trajectory: Trajectory, declaration: Declaration) -> Iterator[Finding]:
    """Every collected test passed by the verifier's own counts, yet it paid nothing.

    Right work is punished. A reward above nothing, other parts of the reward, a limit that was passed and tests that are
    missing against the reference explain a lack of pay; the log is not asked, since the agent's code can write to it.
    """
    reward, report = trajectory.reward, trajectory.verifier
    if reward is None or declaration.pays(reward) or (report is not None and report.exit_code):
        return
    tests = report.tests if report else None
    if report is None or tests is None or tests.collected is None or tests.passed is None:
        raise NotAssessed("verifier.tests: collected and passed")
    if not _all_passed(report, tests, declaration) or _hit_a_limit(trajectory):
        return
    told = f"{tests.passed} of {tests.collected} tests passed and none failed"
    if reward > 0 and reward != declaration.reward.min:
        if len(trajectory.rewards) > 1:
            return
        raise Inconclusive(f"{told}, and the reward {reward:g} is neither nothing nor pay")
    if len(trajectory.rewards) > 1 and any(part and part.score is not None and part.score <= 0 for part in trajectory.rewards.values()):
        raise Inconclusive(f"{told}, and another part of the reward may have taken it back")
    yield Finding(message=f"the verifier paid {reward:g} although {told}; {declaration.reading_of_paid}")


@check(
    version=1,
    tier=Tier.EVIDENCE,
    cause=Cause.VERIFIER_DEFECT,
    clean=[
        example("as many as the reference", _paid(_report(0, collected=12, passed=12)), declaration={"reference_tests": 12}),
        example("the agent added tests of its own", _paid(_report(0, collected=15, passed=15)), declaration={"reference_tests": 12}),
        example(
            "its work broke the collection, and it was not paid", _paid(_report(2, collected=3, errors=1), reward=0.0), declaration={"reference_tests": 12}
        ),
    ],
    flagged=[
        example("a third of the tests is missing", _paid(_report(0, collected=8, passed=8)), declaration={"reference_tests": 12}),
        example("not one is left", _paid(_report(0, collected=0, passed=0)), declaration={"reference_tests": 1}),
    ],
)
def paid_with_fewer_tests_than_the_reference(trajectory: Trajectory, declaration: Declaration) -> Iterator[Finding]:
    """The verifier paid after it collected fewer tests than it does for the reference solution.

    Tests were deleted, deselected or no longer found, so less was verified than the task asks for. Needs the declared
    `reference_tests` and the collected count.
    """
    if not declaration.pays(trajectory.reward):
        return
    tests, reference = trajectory.verifier.tests if trajectory.verifier else None, declaration.collected_by_reference
    if tests is None or tests.collected is None:
        raise NotAssessed("verifier.tests: collected")
    if tests.collected < reference:
        told = f"{tests.collected} tests were collected and the reference has {reference}"
        yield Finding(message=f"the verifier paid {trajectory.reward:g} although {told}; {declaration.reading_of_paid}")


# --- reading the report ----------------------------------------------------------------------------------------------


def evidence(trajectory: Trajectory) -> tuple[VerifierReport, Summary | None]:
    """The report and its log's last summary; raises NotAssessed where neither says anything."""
    report = trajectory.verifier
    summary = last_summary(report.stdout) if report else None
    if report is None or (report.exit_code is None and report.tests is None and summary is None):
        raise NotAssessed("verifier: an exit code, counts of tests or a log with a summary")
    return report, summary


def _failure(report: VerifierReport, summary: Summary | None) -> str | None:
    if report.tests and report.tests.failed:
        of = "" if report.tests.collected is None else f" of {report.tests.collected}"
        return f"{report.tests.failed}{of} tests failed"
    if report.exit_code in FAILURES and report.exit_code not in NOTHING_RAN:
        return f"it ended with exit code {report.exit_code}"
    return f"its log ends with {summary.line!r}" if summary and summary.failed else None


def did_not_run(report: VerifierReport, summary: Summary | None) -> str | None:
    """Why nothing was verified, if nothing was."""
    tests = report.tests or TestCounts()
    if tests.errors:
        return f"there were errors at collection or set-up ({tests.errors})"
    if tests.collected is not None and tests.collected <= (tests.skipped or 0):
        return f"all {tests.collected} collected tests were skipped" if tests.collected else "no test was collected"
    if report.exit_code in NOTHING_RAN:
        return f"it ended with exit code {report.exit_code}, in pytest: {NOTHING_RAN[report.exit_code]}"
    if summary and (summary.errors or not (summary.passed or summary.failed or tests.passed)):
        return f"its log ends with {summary.line!r}"
    return None


def _passed_share(tests: TestCounts | None, summary: Summary | None) -> float | None:
    passed, failed = (tests.passed, tests.failed) if tests and tests.failed else (summary.passed, summary.failed) if summary else (None, None)
    return passed / (passed + failed) if passed is not None and failed else None


def _is_partial_credit(trajectory: Trajectory, declaration: Declaration, share: float, tolerance: float) -> bool:
    """Whether the reward, on its declared scale, or one of its parts is the share of the tests that passed."""
    low, high = declaration.reward.min or 0.0, 1.0 if declaration.reward.max is None else declaration.reward.max
    paid = ((trajectory.reward or 0.0) - low) / (high - low) if high > low else trajectory.reward or 0.0
    scores = [part.score for part in trajectory.rewards.values() if part and part.score is not None]
    if paid >= 1 - tolerance:
        return False  # paid in full
    return any(abs(score - share) <= tolerance for score in (paid, *scores))


def _all_passed(report: VerifierReport, tests: TestCounts, declaration: Declaration) -> bool:
    collected, passed = tests.collected or 0, tests.passed or 0
    if tests.failed or tests.errors or report.timed_out or collected < (declaration.reference_tests or 0):
        return False
    return 0 < passed <= collected <= passed + (tests.skipped or 0)


def _hit_a_limit(trajectory: Trajectory) -> bool:
    return bool(trajectory.termination.truncated or trajectory.termination.timed_out)
