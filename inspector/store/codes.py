"""The small numbers that rows hold for words; appended to, never renumbered."""

from __future__ import annotations

from inspector.verdict import Action, Cause

ACTIONS = (Action.KEEP, Action.EXCLUDE, Action.OVERRIDE_REWARD, Action.HOLD, Action.ADVISE_ROLLBACK, Action.SET_STATE)
CAUSES = (Cause.POLICY_EXPLOIT, Cause.VERIFIER_DEFECT, Cause.ENVIRONMENT_DEFECT, Cause.INFRASTRUCTURE, Cause.RECORD_DEFECT, Cause.ANOMALY)
ACTION_CODE = {action: code for code, action in enumerate(ACTIONS)}
CAUSE_CODE: dict[Cause | None, int | None] = {None: None, **{cause: code for code, cause in enumerate(CAUSES)}}


def cause_of(code: int | None) -> Cause | None:
    """The cause that a row's number stands for."""
    return None if code is None else CAUSES[code]
