"""The episode is unlike the others of its environment: nobody said what is wrong, only how rarely this happens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from inspector.anomaly.features import FEATURES, matrix, told
from inspector.anomaly.made import baselines_around
from inspector.anomaly.model import BASELINE, Model, Normal
from inspector.anomaly.pointing import place_of
from inspector.anomaly.walking import walk
from inspector.check import Baselines, Batch, Cause, Finding, NotAssessed, Tier, Trajectory, check, envelope, example

NAMED = 3  # features that a message names


def _turns(count: int, *, command: str = "pytest {}", back: str = "1 failed in {} s") -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = [{"step_id": 1, "source": "user", "message": "nginx does not start. Find out why and repair it."}]
    for at in range(2, count + 2):
        call = {"tool_call_id": f"call_{at}", "function_name": "bash", "arguments": {"command": command.format(at)}}
        result = {"source_call_id": call["tool_call_id"], "content": back.format(at)}
        steps.append({"step_id": at, "source": "agent", "message": "I look again.", "tool_calls": [call], "observation": {"results": [result]}})
    return steps


_USUAL = envelope(steps=_turns(12))
_KNOWN = baselines_around(_USUAL)


@check(
    version=1,
    tier=Tier.ACTION,
    cause=Cause.ANOMALY,
    clean=[
        example("half as long again as the others", envelope(steps=_turns(18)), baselines=_KNOWN),
        example("a little shorter, and it failed", envelope(steps=_turns(9), reward=0.0), baselines=_KNOWN),
    ],
    flagged=[
        example("twenty times as long as the others", envelope(steps=_turns(240)), baselines=_KNOWN),
        example("each answer of a tool fills pages", envelope(steps=_turns(12, back="{} " + "0123456789abcdef" * 2000)), baselines=_KNOWN),
        example("one and the same call, and each time nothing comes back", envelope(steps=_turns(40, command="sync", back="")), baselines=_KNOWN),
    ],
)
def unlike_its_environment(
    batch: Batch, baselines: Sequence[Baselines], *, rate: Annotated[float, Meta(gt=0, le=0.5)] = 0.10
) -> Iterator[tuple[Trajectory, Finding | NotAssessed]]:
    """The episode is unlike the others of its environment version in this project.

    Its length, calls, answers, repetitions, times, tokens, reward and tests are compared with what is usual there. Of all
    that is said to be unlike the others no more than a share of `rate` is ordinary, on average. Unlike is not bad: a
    person should look, and nothing is held back for it.
    """
    known: list[tuple[Trajectory, Normal]] = []
    for trajectory, baseline in zip(batch, baselines, strict=True):
        try:
            known.append((trajectory, baseline.model(BASELINE)))
        except NotAssessed as missing:
            yield trajectory, missing
    for model in {id(normal.model): normal.model for _, normal in known}.values():
        yield from _unlike(model, [(trajectory, normal) for trajectory, normal in known if normal.model is model], rate)


def _unlike(model: Model, judged: Sequence[tuple[Trajectory, Normal]], rate: float) -> Iterator[tuple[Trajectory, Finding]]:
    environments = np.array([normal.environment for _, normal in judged])
    standardised = model.standardised(matrix([trajectory for trajectory, _ in judged]), environments)
    p_values = model.p_values(standardised)
    for row in np.flatnonzero(p_values <= model.cutoff(rate)):
        trajectory, normal = judged[int(row)]
        yield trajectory, _finding(trajectory, normal, model.oddness.contributions(standardised[row]), float(p_values[row]))


def _finding(trajectory: Trajectory, normal: Normal, contributions: np.ndarray, p_value: float) -> Finding:
    """What makes it odd, the heaviest first, beside what is usual."""
    heaviest = [at for at in np.argsort(-contributions)[:NAMED] if contributions[at] > 0]
    walked, usual = walk(trajectory), normal.usual()
    reasons = "; ".join(told(FEATURES[at], walked, float(usual[at])) for at in heaviest)
    spans = {span: None for at in heaviest if (span := place_of(trajectory, FEATURES[at].name))}
    learnt = f"baseline {normal.model.version}, " if normal.model.version else ""
    beside = f"{learnt}p = {p_value:.2g} among {len(normal.model.calibration):,} ordinary episodes"
    return Finding(message=f"unlike the others of its environment in {reasons} ({beside})", score=1.0 - p_value, spans=tuple(spans), p_value=p_value)
