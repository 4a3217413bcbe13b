"""Champion and challenger: which model holds from now on, judged on labels that neither was fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from inspector.calibration.fitting import crossed, fit, predicted, stage_for
from inspector.calibration.labels import Label, natural
from inspector.calibration.measuring import Truth, brier, difference, ece, log_loss, truth
from inspector.calibration.model import Measured, Model, Stage

SURELY = 1.645  # standard errors: one-sided, 95 %
ORDER = (Stage.RAW, Stage.PLATT, Stage.LOGISTIC)
Vector = NDArray[np.float64]


class Choice(NamedTuple):
    """What holds from now on, and why."""

    model: Model
    why: str
    new: bool  # another one than before


def choose(labels: Sequence[Label], leak: float, policy: str, champion: Model | None) -> Choice:
    """The challenger where it loses no more than the champion on what came since; a champion that lost its worth goes back to the noisy-OR.

    `champion` is what holds now under the same policy. Raises ValueError where there is no label but canaries.
    """
    everything, labels = labels, natural(labels)
    if not labels:
        raise ValueError("there is nothing to choose by")
    stage, said = _stage(labels, leak)
    challenger = _measured(fit(everything, leak, policy=policy, stage=stage), said[stage], labels, leak)
    if champion is None:
        return Choice(challenger, f"the first of {len(labels)} labels", new=True)
    fresh = [at for at, label in enumerate(labels) if label.number > champion.until]
    if not fresh:
        return Choice(champion, "no label came since", new=False)
    since = [labels[at] for at in fresh]
    stood, known = predicted(champion, since, leak), truth(since, truncated=True)
    apart = difference(said[stage][fresh], stood, known)
    if apart.mean <= 0:
        return Choice(challenger, f"{-apart.mean:.4f} nats less log loss on {len(fresh)} labels that neither knew", new=True)
    behind = difference(stood, said[Stage.RAW][fresh], known)
    if behind.mean > SURELY * behind.error:
        model = _measured(fit(everything, leak, policy=policy, stage=Stage.RAW), said[Stage.RAW], labels, leak)
        return Choice(model, f"taken back: {behind.mean:.4f} nats more log loss than the noisy-OR on {len(fresh)} labels", new=True)
    return Choice(champion, f"the challenger lost {apart.mean:.4f} nats more on {len(fresh)} labels", new=False)


def _stage(labels: Sequence[Label], leak: float) -> tuple[Stage, dict[Stage, Vector]]:
    """The highest that the labels carry and that loses no more than the one below it, with what each says of labels that it was not fitted on."""
    highest = ORDER.index(stage_for(labels))
    said = {stage: crossed(labels, leak, stage) for stage in ORDER[: highest + 1]}
    known = truth(labels, truncated=True)
    for at in range(highest, 0, -1):
        if difference(said[ORDER[at]], said[ORDER[at - 1]], known).mean <= 0:
            return ORDER[at], said
    return Stage.RAW, said


def _measured(model: Model, said: Vector, labels: Sequence[Label], leak: float) -> Model:
    known: Truth = truth(labels)
    alone = predicted(Model(policy=""), labels, leak)
    measured = Measured(log_loss=log_loss(said, known), raw_log_loss=log_loss(alone, known), brier=brier(said, known), ece=ece(said, known))
    return msgspec.structs.replace(model, measured=measured)
