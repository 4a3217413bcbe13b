"""The verifier itself timed out, crashed or could not be reached, and there is a reward all the same."""

from __future__ import annotations

from collections.abc import Iterator

from checks.infrastructure import FAILED, error_at, verified
from inspector.check import Cause, Finding, Tier, Trajectory, check, envelope, example
from inspector.trajectory import Boundary, VerifierReport

_KILLED = {
    124: "timed out",
    132: "illegal instruction",
    134: "aborted",
    135: "bus error",
    136: "arithmetic error",
    137: "killed",
    139: "segmentation fault",
    143: "terminated",
}


@check(
    version=1,
    tier=Tier.EVIDENCE,
    cause=Cause.INFRASTRUCTURE,
    clean=[
        example("a crash that was left unscored", envelope(reward=None, verifier={"exit_code": 139})),
        example("failing tests are an answer and not a crash", envelope(reward=0.0, verifier=FAILED)),
        example("the verifier's first try failed, its report is whole", envelope(errors=error_at("ConnectionReset", "verifier"))),
    ],
    flagged=[
        example("the verifier ran out of time", envelope(reward=0.0, verifier={"timed_out": True, "duration_s": 600.0})),
        example("the verifier was killed and the agent was paid", envelope(verifier={"exit_code": 137})),
        example("a signal, as Python reports it", envelope(reward=0.0, verifier={"exit_code": -11})),
        example("the verifier could not be reached", envelope(reward=0.0, verifier=None, errors=error_at("ConnectionRefused", "verifier"))),
    ],
)
def crashed_verifier_scored(trajectory: Trajectory) -> Iterator[Finding]:
    """The verifier timed out, crashed or could not be reached, yet there is a reward.

    A number that no verifier gave is noise, whether it is high or low. A signal that the tests of the agent's work
    ran into is only meant where it ended the verifier itself: its own exit code, its own time-out.
    """
    if trajectory.reward is None:
        return
    report = trajectory.verifier
    if reason := _crash(report):
        yield Finding(message=f"the verifier {reason}, yet the reward is {trajectory.reward:g} and not null")
    elif not verified(report) and (error := next((error for error in trajectory.errors if error.boundary is Boundary.VERIFIER), None)):
        yield Finding(
            message=f"{error.type or 'an error'} at the boundary verifier and no whole report of it, yet the reward is {trajectory.reward:g} and not null"
        )


def _crash(report: VerifierReport | None) -> str | None:
    if report is None:
        return None
    if report.timed_out:
        return "timed out" if report.duration_s is None else f"timed out after {report.duration_s:g} s"
    code = report.exit_code
    if code is None or (code >= 0 and code not in _KILLED):
        return None
    return f"was ended by signal {-code} (exit code {code})" if code < 0 else f"ended with exit code {code} ({_KILLED[code]})"
