"""The verifier contradicts itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from inspector.check import Cause, Finding, History, Tier, Trajectory, Twin, check, envelope, example

Share = Annotated[float, Meta(ge=0, le=1)]
Listed = Annotated[int, Meta(ge=1, le=100)]

_LEFT = [{"name": "workspace.tar", "sha256": "ab" * 32, "role": "final_state"}]


@check(
    version=1,
    tier=Tier.EVIDENCE,
    cause=Cause.VERIFIER_DEFECT,
    clean=[
        example(
            "the same state was paid the same before", envelope(artifacts=_LEFT), history=History(same_state={"run7-s12-g3-0": [Twin("run7-s11-g3-0", 1.0)]})
        ),
        example(
            "the other was not scored, which disputes nothing", envelope(artifacts=_LEFT), history=History(same_state={"run7-s12-g3-0": [Twin("a", None)]})
        ),
        example("this one was not scored", envelope(artifacts=_LEFT, reward=None), history=History(same_state={"run7-s12-g3-0": [Twin("a", 1.0)]})),
        example("no state is attached", envelope()),
    ],
    flagged=[
        example(
            "the same state was refused once and paid this time",
            envelope(artifacts=_LEFT),
            history=History(same_state={"run7-s12-g3-0": [Twin("run7-s11-g3-0", 0.0)]}),
        ),
        example(
            "one of two others was paid otherwise",
            envelope(artifacts=_LEFT, reward=0.0),
            history=History(same_state={"run7-s12-g3-0": [Twin("a", 0.0), Twin("b", 1.0)]}),
        ),
    ],
)
def same_state_another_reward(trajectory: Trajectory, history: History, *, tolerance: Share = 0.01, listed: Listed = 5) -> Iterator[Finding]:
    """The same final state of the same task was scored by the same verifier with another reward.

    One of the rewards is wrong whatever the agents did on the way, so no reward of this state can be learnt from. States are
    told apart by the digests of what was posted as `final_state`, verifiers by the digest in the envelope; episodes that a limit cut
    are passed over. `tolerance` is relative, and absorbs a judge's jitter; `listed` is how many others the message names.
    """
    reward = trajectory.reward
    if reward is None or not (others := history.same_state(trajectory)):
        return
    differing = [other for other in others if other.reward is not None and abs(other.reward - reward) > tolerance * max(1.0, abs(reward))]
    if differing:
        told = ", ".join(f"{other.id!r} got {other.reward:g}" for other in differing[:listed])
        more = f" and {len(differing) - listed} more differ" if len(differing) > listed else ""
        yield Finding(message=f"the same final state was rewarded with {reward:g} here, but {told}{more}")
