"""Episodes that were cut at a limit and pass for finished, and tests that could not run through no fault of the policy."""

from __future__ import annotations

import pytest

from checks.collection import _unpaid, _wrote, unpaid_although_tests_could_not_run
from checks.limits import _ended, _steps, finished_at_its_limit
from inspector import engine
from inspector.engine import Needs
from inspector.task import Declaration, LimitsDeclaration
from inspector.testing import trajectory
from inspector.verdict import Outcome

MODULE = "ERROR tests/test_a.py\nE   ModuleNotFoundError: No module named 'numpy'\n=== 1 error in 0.12s ===\n"
SYNTAX = "ERROR tests/test_a.py\nE   SyntaxError: invalid syntax\n=== 1 error in 0.12s ===\n"
FULL = "OSError: [Errno 28] No space left on device\n"


def outcome(check, posted, **limits) -> Outcome:
    [found] = engine.run([check.qualified("test")], [trajectory(**posted)], Needs([Declaration(limits=LimitsDeclaration(**limits))]))
    return found.outcome(0)


@pytest.mark.parametrize(
    ("posted", "limits", "expected"),
    [
        (_ended(), {}, Outcome.NOT_ASSESSED),
        (_ended(), {"seconds": 60}, Outcome.NOT_ASSESSED),
        (_ended(), {"steps": 4, "seconds": 60}, Outcome.CLEAN),
        (_ended(), {"steps": 3}, Outcome.FLAGGED),
        (_ended(), {"steps": 2}, Outcome.FLAGGED),
        (_ended(reward=None), {"steps": 2}, Outcome.CLEAN),
        (_ended(reward=1.0), {"steps": 3}, Outcome.FLAGGED),
        (_ended(" Submitted "), {"steps": 3}, Outcome.FLAGGED),
        (_ended("timeout"), {"steps": 3}, Outcome.CLEAN),
        (_ended(steps=_steps(before=3)[:1]), {"steps": 1}, Outcome.CLEAN),
        (_ended(started_at="2026-11-30T10:01:00Z", ended_at="2026-11-30T10:00:00Z"), {"seconds": 1}, Outcome.CLEAN),
        (_ended(started_at="2026-11-30T10:00:00Z", ended_at="2026-11-30T10:30:00Z"), {"steps": 9, "seconds": 1800}, Outcome.FLAGGED),
    ],
)
def test_a_limit_that_was_reached(posted, limits, expected):
    assert outcome(finished_at_its_limit, posted, **limits) is expected


@pytest.mark.parametrize(
    ("posted", "expected"),
    [
        (_unpaid(SYNTAX, steps=_wrote("app.py", "def f(:")), Outcome.INCONCLUSIVE),
        (_unpaid(MODULE, steps=_wrote("app.py", "import numpy as np")), Outcome.INCONCLUSIVE),
        (_unpaid(MODULE, steps=_wrote("app.py", "x = 1")), Outcome.FLAGGED),
        (_unpaid("bash: pytest: command not found\n", exit_code=127), Outcome.FLAGGED),
        (_unpaid(FULL, steps=_wrote("app.py", "x = 1")), Outcome.FLAGGED),
        (_unpaid(FULL, steps=_wrote("fill.sh", "dd if=/dev/zero of=/tmp/a")), Outcome.INCONCLUSIVE),
        (_unpaid("bash: pytest: command not found\n", exit_code=127, steps=_wrote("a.sh", "rm $(which pytest)")), Outcome.INCONCLUSIVE),
        (_unpaid("", exit_code=5, steps=_wrote("app.py", "x = 1")), Outcome.INCONCLUSIVE),
        (_unpaid("3 passed in 0.01s\n", exit_code=0), Outcome.CLEAN),
        (_unpaid(MODULE, reward=0.5, steps=_wrote("app.py", "x = 1")), Outcome.CLEAN),
        ({"reward": 0.0, "verifier": None}, Outcome.NOT_ASSESSED),
    ],
)
def test_tests_that_could_not_run(posted, expected):
    assert outcome(unpaid_although_tests_could_not_run, posted) is expected
