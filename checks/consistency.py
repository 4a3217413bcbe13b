"""The verifier contradicts itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from inspector.check import Cause, Finding, History, NotAssessed, Replayed, Tier, Trajectory, Twin, check, envelope, example

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


def _again(*rewards: float) -> History:
    return History(replays={"run7-s12-g3-0": Replayed(rewards)})


@check(
    version=1,
    tier=Tier.EVIDENCE,
    cause=Cause.VERIFIER_DEFECT,
    clean=[
        example("graded once more, with the same reward", envelope(artifacts=_LEFT), history=_again(1.0)),
        example("a judge's jitter is no other reward", envelope(artifacts=_LEFT, reward=0.5), history=_again(0.505)),
        example("an episode that was not scored has no reward to hold it against", envelope(artifacts=_LEFT, reward=None), history=_again(0.0)),
    ],
    flagged=[
        example("paid, and refused by half of nine gradings", envelope(artifacts=_LEFT), history=_again(0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0)),
        example("refused, and paid whenever it was graded again", envelope(artifacts=_LEFT, reward=0.0), history=_again(*[1.0] * 9)),
    ],
)
def replay_disagrees(trajectory: Trajectory, history: History, *, tolerance: Share = 0.01) -> Iterator[Finding]:
    """The environment's registered verifier graded the final state again, in a fresh sandbox, and paid otherwise.

    Where the gradings differ from each other too the verifier draws lots; where they agree with each other the reward that was
    posted is not what this verifier pays for this state. What no sandbox could grade is not assessed. `tolerance` is relative.
    """
    reward, replayed = trajectory.reward, history.replayed(trajectory)
    if reward is None:
        return
    if replayed is None or not replayed.rewards:
        raise NotAssessed(f"replay: {replayed.trouble}" if replayed else "replay: its final state was not graded again")
    if any(abs(again - reward) > tolerance * max(1.0, abs(reward)) for again in replayed.rewards):
        paid = ", ".join(f"{again:g} ({times} of {len(replayed.rewards)})" for again, times in Counter(replayed.rewards).most_common(5))
        yield Finding(message=f"the same final state was rewarded with {reward:g} here, and graded again with {paid}")
