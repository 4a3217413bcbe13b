"""28 numbers of an episode's shape, in plain Python."""

from __future__ import annotations

from math import sqrt

from benchmarks.shared.texts import Shape

COUNT = 28


def features(shape: Shape) -> list[float]:
    steps = shape.steps
    count = len(steps) or 1
    columns = [[step[at] for step in steps] or [0] for at in (1, 2, 3, 4)]
    sums = [sum(column) for column in columns]
    means = [total / count for total in sums]
    spreads = [sqrt(max(0.0, sum(x * x for x in column) / count - mean * mean)) for column, mean in zip(columns, means, strict=True)]
    totals = [sum(lengths) for lengths in zip(*columns, strict=True)]
    calls = sum(step.calls for step in steps)
    agents = sum(step.agent for step in steps)
    total = sum(totals)
    return [
        float(len(steps)),
        float(agents),
        float(calls),
        float(total),
        *map(float, sums),
        *means,
        *(float(max(column)) for column in columns),
        *spreads,
        float(sum(step.agent and not step.calls for step in steps)),
        float(sum(not step.observation for step in steps)),
        max(totals) / (total or 1),
        float(columns[0][-1]),
        float(totals[0]),
        float(shape.commands),
        shape.commands / (calls or 1),
        -1.0 if shape.reward is None else shape.reward,
    ]
