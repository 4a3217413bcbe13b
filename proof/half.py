"""A check that sees every second exploit, for the arm that asks what a half blind gate is worth."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from checks.payment import cross_task_payment
from inspector.check import Cause, Declaration, Finding, Payments, Tier, Trajectory, check


@check(version=1, tier=Tier.ACTION, cause=Cause.POLICY_EXPLOIT, clean=cross_task_payment.clean, flagged=cross_task_payment.flagged)
def half_seeing(trajectory: Trajectory, declaration: Declaration, payments: Payments) -> Iterator[Finding]:
    """As `builtin/cross_task_payment`, with half of its recall: which half is drawn from the trajectory's id."""
    if hashlib.sha256(trajectory.id.encode()).digest()[0] & 1:
        yield from cross_task_payment(trajectory, declaration, payments)
