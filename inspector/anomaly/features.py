"""The shape of an episode in numbers: what each means, how it is transformed, and all of a batch in one matrix.

Taken from the trajectory alone, and from nothing that an id, a name, `extra` or the agent's reasoning says: a trainer
may learn of a finding, and must not learn to think elsewhere. A value that was not recorded is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inspector.anomaly.walking import Walk, walk
from inspector.trajectory import Trajectory


class Form(Enum):
    """How a value is transformed, so that its usual variation is about the same wherever it lies."""

    COUNT = "log(1 + x)"
    SHARE = "logit"
    SIGNED = "asinh"
    FLAG = "as it is"


class Feature(NamedTuple):
    """One column of the matrix."""

    name: str
    says: str  # what a reviewer reads before its value
    form: Form = Form.COUNT
    of: str = ""  # of a share: the column of `Walk` that it is of
    unit: str = ""


FEATURES = (
    Feature("turns", "turns of the agent"),
    Feature("calls", "tool calls"),
    Feature("silent_turns", "turns without a tool call", Form.SHARE, "turns"),
    Feature("said", "text that it wrote", unit="characters"),
    Feature("done", "arguments of its tool calls", unit="characters"),
    Feature("seen", "text that came back from tools", unit="characters"),
    Feature("asked", "prompts and messages to it", unit="characters"),
    Feature("longest_said", "its longest message", unit="characters"),
    Feature("longest_done", "the arguments of its longest tool call", unit="characters"),
    Feature("longest_seen", "the longest answer of a tool", unit="characters"),
    Feature("last_said", "its last message", unit="characters"),
    Feature("empty_answers", "tool calls that came back empty", Form.SHARE, "answers"),
    Feature("failing_answers", "answers of tools that speak of an error", Form.SHARE, "answers"),
    Feature("failures_in_a_row", "such answers in a row"),
    Feature("repeated_calls", "tool calls made before with the same arguments", Form.SHARE, "calls"),
    Feature("same_call_in_a_row", "the same tool call in a row"),
    Feature("repeated_answers", "answers of tools that came before word for word", Form.SHARE, "answers"),
    Feature("tools", "different tools that it called"),
    Feature("main_tool", "calls of the tool that it used most", Form.SHARE, "calls"),
    Feature("tokens_written", "tokens that it wrote"),
    Feature("tokens_read", "tokens of its longest prompt"),
    Feature("seconds", "duration", unit="s"),
    Feature("seconds_a_turn", "duration of a turn on average", unit="s"),
    Feature("longest_pause", "longest pause between two steps", unit="s"),
    Feature("reward", "reward", Form.SIGNED),
    Feature("unscored", "without a reward", Form.FLAG),
    Feature("cut", "cut short by a limit", Form.FLAG),
    Feature("errors", "recorded errors"),
    Feature("verifier_seconds", "duration of the verifier", unit="s"),
    Feature("tests", "tests that the verifier collected"),
    Feature("failed_tests", "tests that failed", Form.SHARE, "tests"),
)
NAMES = tuple(feature.name for feature in FEATURES)
COUNT = len(FEATURES)
FLOORS = np.array([{Form.COUNT: 0.1, Form.SHARE: 0.5, Form.SIGNED: 0.1, Form.FLAG: 0.25}[feature.form] for feature in FEATURES])  # below it nothing is unusual
SMOOTH = 0.02  # added to a share and to its rest: none and all are a long way off, but not infinitely

_COLUMN = {name: at for at, name in enumerate(Walk._fields)}
_SHARES = [at for at, feature in enumerate(FEATURES) if feature.form is Form.SHARE]
_WHOLES = [_COLUMN[feature.of] for feature in FEATURES if feature.form is Form.SHARE]
_COUNTS = [at for at, feature in enumerate(FEATURES) if feature.form is Form.COUNT]
_SIGNED = [at for at, feature in enumerate(FEATURES) if feature.form is Form.SIGNED]


def matrix(trajectories: Sequence[Trajectory]) -> NDArray[np.float64]:
    """A row of transformed features for each trajectory."""
    return transformed(np.array([walk(trajectory) for trajectory in trajectories], np.float64).reshape(-1, len(Walk._fields)))


def transformed(walked: NDArray[np.float64]) -> NDArray[np.float64]:
    """What `walk` counted, as detectors take it."""
    rows = walked[:, :COUNT].copy()
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.clip(rows[:, _SHARES] / walked[:, _WHOLES], 0.0, 1.0)  # of nothing: NaN
    rows[:, _SHARES] = np.log((shares + SMOOTH) / (1.0 - shares + SMOOTH))
    rows[:, _COUNTS] = np.log1p(np.maximum(rows[:, _COUNTS], 0.0))
    rows[:, _SIGNED] = np.arcsinh(rows[:, _SIGNED])
    return rows


def told(feature: Feature, walked: Walk, usual: float) -> str:
    """A feature in plain words: its value in this episode, and what is usual (transformed, as in the matrix)."""
    value = float(getattr(walked, feature.name))
    if feature.form is Form.FLAG:
        return f"{feature.says}: {_flag(value)} (usually {_flag(round(usual))})"
    if feature.form is Form.SHARE:
        odds = math.exp(usual)
        share = min(1.0, max(0.0, (odds * (1.0 + SMOOTH) - SMOOTH) / (1.0 + odds)))
        return f"{feature.says}: {value:.0f} of {getattr(walked, feature.of):.0f} (usually {share:.0%})"
    back = math.sinh(usual) if feature.form is Form.SIGNED else math.expm1(usual)
    unit = f" {feature.unit}" if feature.unit else ""
    return f"{feature.says}: {_shown(value)}{unit} (usually {_shown(back)})"


def _flag(value: float) -> str:
    return "yes" if value else "no"


def _shown(value: float) -> str:
    """Three digits are enough to see that it is unusual."""
    if abs(value) >= 100:
        return f"{value:,.0f}" if abs(value) < 1e9 else f"{value:.2e}"
    return f"{float(f'{value:.3g}'):g}"
