"""The record contradicts its own rules, its environment's declaration, or what was posted before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Meta

from inspector.check import Cause, Declaration, Finding, History, Tier, Trajectory, Twin, check, envelope, example
from inspector.trajectory import Defect, Source

Share = Annotated[float, Meta(ge=0, le=1)]
Listed = Annotated[int, Meta(ge=1, le=100)]

_UNIT = {"reward": {"min": 0, "max": 1}}
_CALL = {"tool_call_id": "call_1", "function_name": "ls", "arguments": {}}
_TOKENS = {"ids": "AAAAAAAAAAA=", "loss_mask": "AAE=", "logprobs": "AAAAAAAAAAA="}  # two tokens


@check(
    version=1,
    tier=Tier.EVIDENCE,
    cause=Cause.RECORD_DEFECT,
    clean=[
        example("a field nobody knows is kept, and is no defect", {**envelope(), "flavour": "sweet"}),
        example("token arrays are judged by a check of their own", envelope(tokens={**_TOKENS, "loss_mask": "AA=="})),
    ],
    flagged=[
        example(
            "a step is missing: its numbers jump from 1 to 3",
            envelope(steps=[{"step_id": 1, "source": "user", "message": "Go on."}, {"step_id": 3, "source": "agent", "message": "Done."}]),
        ),
        example(
            "a result answers a call that was never made",
            envelope(
                steps=[
                    {"step_id": 1, "source": "user", "message": "List the files."},
                    {"step_id": 2, "source": "agent", "message": "", "tool_calls": [_CALL], "observation": {"results": [{"source_call_id": "call_9"}]}},
                ]
            ),
        ),
    ],
)
def record_breaks_its_rules(trajectory: Trajectory, *, listed: Listed = 5) -> Iterator[Finding]:
    """The posted line breaks rules of the record that the worker can see and the door could not.

    Steps out of order, results without their call, times that are no times, numbers beyond a float. Grave where the
    reward or the group is wrong. `listed` is how many defects the message names; the raw line stays readable.
    """
    if trajectory.defects:
        yield from _defects([defect for defect in trajectory.defects if not _of_tokens(defect)], listed)


@check(
    version=1,
    tier=Tier.EVIDENCE,
    cause=Cause.RECORD_DEFECT,
    clean=[
        example("all three arrays hold two tokens", envelope(tokens=_TOKENS)),
        example("logprobs were not recorded, the others agree", envelope(tokens={**_TOKENS, "logprobs": None})),
    ],
    flagged=[
        example("two ids and one value of the mask", envelope(tokens={**_TOKENS, "loss_mask": "AA=="})),
        example("a span ends behind the last token", envelope(tokens={**_TOKENS, "spans": [[2, 0, 3]]})),
    ],
)
def token_arrays_do_not_match(trajectory: Trajectory, *, listed: Listed = 5) -> Iterator[Finding]:
    """Token ids, loss mask and log-probabilities do not fit each other, or their spans do not fit the steps.

    A trainer would weigh the wrong tokens. `listed` is how many of the faults the message names.
    """
    if trajectory.tokens is not None and trajectory.defects:
        yield from _defects([defect for defect in trajectory.defects if _of_tokens(defect)], listed)


def _of_tokens(defect: Defect) -> bool:
    return defect.path.startswith("$.tokens")


def _defects(defects: Sequence[Defect], listed: int) -> Iterator[Finding]:
    if not defects:
        return
    grave_first = sorted(defects, key=lambda defect: not defect.grave)
    told = "; ".join(f"{defect.path}: {defect.message}" for defect in grave_first[:listed])
    more = f"; and {len(defects) - listed} more" if len(defects) > listed else ""
    yield Finding(message=f"{_counted(len(defects), 'defect')} of the record: {told}{more}", grave=grave_first[0].grave)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


@check(
    version=1,
    tier=Tier.EVIDENCE,
    cause=Cause.RECORD_DEFECT,
    clean=[
        example("exactly the declared maximum", envelope(reward=1.0), declaration=_UNIT),
        example("not scored lies in no range and outside none", envelope(reward=None), declaration=_UNIT),
        example("rounding of a 32-bit float", envelope(reward=1.0000001192092896), declaration=_UNIT),
    ],
    flagged=[
        example("percent where a share was declared", envelope(reward=87.5), declaration=_UNIT),
        example("a penalty below the declared minimum", envelope(reward=-1.0), declaration=_UNIT),
        example("only the maximum is declared, and that is passed", envelope(reward=2.0), declaration={"reward": {"max": 1}}),
    ],
)
def reward_outside_declared_range(trajectory: Trajectory, declaration: Declaration, *, tolerance: Share = 1e-6) -> Iterator[Finding]:
    """The reward lies outside the range that the environment's owner declared.

    Either the verifier or the way to the trainer changed its unit or added something; no advantage computed from it
    can be trusted. `tolerance` is relative to the bound and absorbs rounding.
    """
    reward = trajectory.reward
    if reward is None:
        return
    low, high = declaration.reward.min, declaration.reward.max
    if low is not None and reward < low - tolerance * max(1.0, abs(low)):
        yield Finding(message=f"the reward {reward:g} is below the declared minimum {low:g}", grave=True)
    elif high is not None and reward > high + tolerance * max(1.0, abs(high)):
        yield Finding(message=f"the reward {reward:g} is above the declared maximum {high:g}", grave=True)
    else:
        _ = declaration.reward_range  # both bounds are needed to call it clean


@check(
    version=1,
    tier=Tier.EVIDENCE,
    cause=Cause.RECORD_DEFECT,
    clean=[
        example("the only task of this group, seen twice", envelope(), history=History(tasks_of_group={"run7-s12-g3-0": ["fix-nginx", "fix-nginx"]})),
        example("an episode without a group", envelope(group=None)),
    ],
    flagged=[
        example("another rollout of the group is of another task", envelope(), history=History(tasks_of_group={"run7-s12-g3-0": ["fix-nginx", "fix-dns"]})),
        example("all earlier rollouts are of another task", envelope(), history=History(tasks_of_group={"run7-s12-g3-0": ["fix-dns"]})),
    ],
)
def group_spans_several_tasks(trajectory: Trajectory, history: History, *, listed: Listed = 5) -> Iterator[Finding]:
    """One group id holds rollouts of several tasks, so its members are ranked against work of another kind.

    The advantage of each is then mostly the difference in difficulty. `listed` is how many tasks the message names.
    """
    if trajectory.group is None or not (seen := history.tasks_of_group(trajectory)):
        return
    tasks = sorted({trajectory.task.id, *seen})
    if len(tasks) > 1:
        told = ", ".join(repr(task) for task in tasks[:listed]) + (f" and {len(tasks) - listed} more" if len(tasks) > listed else "")
        yield Finding(message=f"the group {trajectory.group.id!r} holds {len(tasks)} tasks: {told}", grave=True)


@check(
    version=1,
    tier=Tier.EVIDENCE,
    cause=Cause.RECORD_DEFECT,
    clean=[
        example("the twin got the same reward", envelope(), history=History(twins={"run7-s12-g3-0": [Twin("run7-s11-g3-0", 1.0)]})),
        example("the twin was not scored, which disputes nothing", envelope(reward=0.0), history=History(twins={"run7-s12-g3-0": [Twin("a", None)]})),
        example(
            "the agent did nothing in either, so equal steps say little",
            envelope(reward=0.0, steps=[{"step_id": 1, "source": "user", "message": "Guess the coin."}]),
            history=History(twins={"run7-s12-g3-0": [Twin("a", 1.0)]}),
        ),
    ],
    flagged=[
        example("identical work was paid once and not the other time", envelope(), history=History(twins={"run7-s12-g3-0": [Twin("run7-s11-g3-0", 0.0)]})),
        example("one of two twins got another reward", envelope(reward=0.5), history=History(twins={"run7-s12-g3-0": [Twin("a", 0.5), Twin("b", 1.0)]})),
    ],
)
def same_steps_with_another_reward(trajectory: Trajectory, history: History, *, tolerance: Share = 0.01, listed: Listed = 5) -> Iterator[Finding]:
    """The same steps, but for ids and times, were posted under another id of the same task with another reward.

    Equal work cannot deserve both, so at least one of the records carries a wrong reward. Episodes in which the agent took
    no step are passed over. `tolerance` is relative, and absorbs a judge's jitter; `listed` is how many twins the message names.
    """
    reward = trajectory.reward
    if reward is None or not (twins := history.twins(trajectory)):
        return
    others = [twin for twin in twins if twin.reward is not None and abs(twin.reward - reward) > tolerance * max(1.0, abs(reward))]
    if others and any(step.source is Source.AGENT for step in trajectory.steps):
        told = ", ".join(f"{twin.id!r} got {twin.reward:g}" for twin in others[:listed])
        more = f" and {len(others) - listed} more differ" if len(others) > listed else ""
        yield Finding(message=f"the same steps were rewarded with {reward:g} here, but {told}{more}", grave=True)
