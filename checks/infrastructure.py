"""The episode or its verifier broke, and the reward says nothing of it.

What excuses the policy, and what does not (each row is an example or a test of the checks below):

| what the record says                                              | a reward of zero is             |
|-------------------------------------------------------------------|---------------------------------|
| error at provider, harness, sandbox or task, episode cut short    | not the policy's                |
| such an error, but the agent then finished and was verified       | its own: the error was overcome |
| such an error, the agent finished, no verifier report             | not to be told                  |
| such an error, an ending in free text, a verifier report          | not to be told                  |
| error at the tool                                                 | its own: it chose what to run   |
| context length, token, step or content limits, at any boundary    | its own                         |
| max_steps, max_tokens                                             | its own: the task's rule        |
| cancelled                                                         | not the policy's                |
| timed out, no verifier report                                     | unfounded: nobody looked        |
| timed out, but what was there was verified                        | its own                         |
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from inspector.check import Cause, Declaration, Finding, Inconclusive, Tier, Trajectory, check, envelope, example
from inspector.trajectory import Boundary, EpisodeError, VerifierReport

Boundaries = tuple[Boundary, ...]

FINISHED = ("completed", "submitted")  # the agent's own end
OWN_END = (*FINISHED, "max_steps", "max_tokens")  # nothing from outside ended it
# A limit that the policy ran into, whichever side reported it.
_OWN_LIMIT = re.compile(
    r"context.?(length|window)|prompt.{0,4}too.?long|max.?(tokens|steps|turns)|too.?many.?(steps|turns)|token.?limit|step.?limit|content.?(filter|policy)|refusal",
    re.IGNORECASE,
)


def _zero(**overrides: Any) -> dict[str, Any]:
    return envelope(**{"reward": 0.0, "verifier": None, "termination": {"reason": "error"}, **overrides})


def error_at(kind: str, boundary: str | None, message: str = "") -> list[dict[str, Any]]:
    return [{"type": kind, "boundary": boundary, "message": message}]


FAILED = {"exit_code": 1, "tests": {"collected": 12, "passed": 10, "failed": 2}}


@check(
    version=1,
    tier=Tier.EVIDENCE,
    cause=Cause.INFRASTRUCTURE,
    clean=[
        example("not scored is the right answer to a dead sandbox", _zero(reward=None, errors=error_at("SandboxDied", "sandbox"))),
        example("the agent's own command made the tool fail", _zero(errors=error_at("ToolTimeout", "tool"))),
        example("the agent wrote more than the context holds", _zero(errors=error_at("ContextLengthExceeded", "provider"))),
        example(
            "the provider's hiccup was overcome: the agent submitted and its tests failed",
            _zero(errors=error_at("RateLimited", "provider"), termination={"reason": "submitted"}, verifier=FAILED),
        ),
        example(
            "it went on to its last step in spite of the provider",
            _zero(errors=error_at("RateLimited", "provider"), termination={"reason": "max_steps", "truncated": True}, verifier=FAILED),
        ),
        example(
            "the provider says that the prompt grew too long",
            _zero(errors=error_at("BadRequest", "provider", "This model's maximum context length is 8192 tokens")),
        ),
        example("it was paid in spite of the error", _zero(reward=1.0, errors=error_at("SandboxDied", "sandbox"))),
        example("an honest failure without any error", _zero(termination={"reason": "submitted"}, verifier=FAILED)),
    ],
    flagged=[
        example("the sandbox died", _zero(errors=error_at("SandboxDied", "sandbox", "container exited with 137"))),
        example("the provider refused to serve, and nothing says how it ended", _zero(errors=error_at("ServiceUnavailable", "provider"), termination=None)),
        example(
            "the harness crashed before the declared minimum was given",
            _zero(reward=-1.0, errors=error_at("KeyError", "harness")),
            declaration={"reward": {"min": -1}},
        ),
        example("it ended in an error that nobody typed, and nothing was verified", _zero()),
    ],
)
def broken_episode_scored_zero(
    trajectory: Trajectory,
    declaration: Declaration,
    *,
    excusing: Boundaries = (Boundary.PROVIDER, Boundary.HARNESS, Boundary.SANDBOX, Boundary.TASK),
) -> Iterator[Finding]:
    """Something outside the policy broke the episode, yet it was scored zero and not left unscored.

    The policy is punished for an outage and learns to avoid whatever it did just before. `excusing` lists the boundaries
    at which an error is not the policy's doing; errors of the tool are left out, since the agent chooses what to run.
    """
    if not _worth_nothing(trajectory.reward, declaration):
        return
    reason = _reason(trajectory)
    if not trajectory.errors and reason != "error":
        return
    excuses = [error for error in trajectory.errors if error.boundary in excusing and not _policys_own(error)]
    if excuses:
        yield from _broken(trajectory, reason, excuses[0])
    elif not trajectory.errors and not verified(trajectory.verifier):
        yield Finding(message=f"it ended with reason 'error' and without a verifier report, yet the reward is {trajectory.reward:g} and not null")
    elif reason not in OWN_END and any(error.boundary is None and not _policys_own(error) for error in trajectory.errors):
        raise Inconclusive("an error without a boundary: it cannot be told whether the policy caused it")
    elif not trajectory.errors:
        raise Inconclusive("it ended in an error that has no boundary, and was verified as it stood")


def _broken(trajectory: Trajectory, reason: str, error: EpisodeError) -> Iterator[Finding]:
    said = f"{error.type or 'an error'} at the boundary {error.boundary}"
    if reason in ("", "error", "timeout", "cancelled") or (reason not in OWN_END and not verified(trajectory.verifier)):
        yield Finding(message=f"{said} broke the episode (reason {reason or 'not given'!r}), yet the reward is {trajectory.reward:g} and not null")
    elif reason not in OWN_END or not verified(trajectory.verifier):
        raise Inconclusive(f"{said}, but the episode ended with reason {reason!r}: it may have been overcome")


@check(
    version=1,
    tier=Tier.EVIDENCE,
    cause=Cause.INFRASTRUCTURE,
    clean=[
        example("out of steps is the task's rule", _zero(termination={"reason": "max_steps", "truncated": True})),
        example("out of tokens is the policy's own doing", _zero(termination={"reason": "max_tokens", "truncated": True})),
        example("not scored is the right answer to a time-out", _zero(reward=None, termination={"reason": "timeout", "timed_out": True})),
        example("what stood there when time was up was verified", _zero(termination={"reason": "timeout", "timed_out": True}, verifier=FAILED)),
    ],
    flagged=[
        example("timed out, and nothing was verified", _zero(termination={"reason": "timeout", "truncated": True, "timed_out": True})),
        example("cancelled from outside", _zero(termination={"reason": "cancelled"}, verifier=FAILED)),
        example(
            "all of the declared half hour was used, and nobody looked at what was there",
            _zero(termination={"reason": "timeout"}, started_at="2026-11-30T10:00:00Z", ended_at="2026-11-30T10:30:01Z"),
            declaration={"limits": {"seconds": 1800}},
        ),
    ],
)
def interrupted_episode_scored_zero(trajectory: Trajectory, declaration: Declaration) -> Iterator[Finding]:
    """The episode was cancelled or timed out before anything was verified, yet it was scored zero and not left unscored.

    How far an agent gets in a wall-clock limit depends on the machines, and what it is worth is not known until the
    verifier looked, even where the declared time was all used. A zero that the verifier gave to what was there is an
    answer; limits of steps and tokens are the task's rule.
    """
    if not _worth_nothing(trajectory.reward, declaration):
        return
    reason = _reason(trajectory)
    if reason == "cancelled":
        yield Finding(message=f"it was cancelled, yet the reward is {trajectory.reward:g} and not null")
    elif (reason == "timeout" or trajectory.termination.timed_out) and not verified(trajectory.verifier):
        yield Finding(message=f"it timed out and nothing was verified, yet the reward is {trajectory.reward:g} and not null")


def _worth_nothing(reward: float | None, declaration: Declaration) -> bool:
    """Whether the reward is what is given for nothing: zero, or the declared minimum."""
    return reward is not None and (reward == 0 or reward == declaration.reward.min)


def _reason(trajectory: Trajectory) -> str:
    return (trajectory.termination.reason or "").strip().lower()


def _cut(trajectory: Trajectory) -> bool:
    return bool(trajectory.termination.truncated or trajectory.termination.timed_out)


def _policys_own(error: EpisodeError) -> bool:
    return bool(_OWN_LIMIT.search(f"{error.type} {(error.message or '')[:500]}"))


def verified(report: VerifierReport | None) -> bool:
    """Whether the verifier ran to its end."""
    return report is not None and not report.timed_out and (report.exit_code is not None or report.tests is not None)


@check(
    version=1,
    tier=Tier.EVIDENCE,
    cause=Cause.INFRASTRUCTURE,
    clean=[
        example("cut at its step limit, and the reason says so", envelope(reward=0.0, termination={"reason": "max_steps", "truncated": True})),
        example("submitted in time", envelope(termination={"reason": "submitted", "truncated": False, "timed_out": False})),
        example("cut, and no reason given", envelope(termination={"truncated": True})),
    ],
    flagged=[
        example("completed and yet timed out", envelope(termination={"reason": "completed", "timed_out": True})),
        example("submitted and yet truncated", envelope(reward=0.0, termination={"reason": "submitted", "truncated": True})),
    ],
)
def ending_contradicts_itself(trajectory: Trajectory) -> Iterator[Finding]:
    """The record says that the agent finished, and that it was cut short.

    One of the two is wrong: the reward may speak of a limit, or a finished episode may be masked as truncated.
    """
    reason = _reason(trajectory)
    if reason in FINISHED and _cut(trajectory):
        cuts = [name for name in ("truncated", "timed_out") if getattr(trajectory.termination, name)]
        yield Finding(message=f"the reason is {reason!r}, yet {' and '.join(cuts)} {'is' if len(cuts) == 1 else 'are'} true")
