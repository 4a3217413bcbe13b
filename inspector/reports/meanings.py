"""What each outcome means, in one sentence, and how bad it is."""

from __future__ import annotations

from inspector.probe.words import Outcome

MEANINGS = {
    Outcome.UNSOLVABLE: "The verifier refuses the task's own reference, each time.",
    Outcome.TRIVIALLY_PASSABLE: "Doing nothing, or next to nothing, is paid.",
    Outcome.EXPLOITABLE: "A submission that does not solve the task is paid for a trick, and is not paid without it.",
    Outcome.WEAK_VERIFIER: "A submission that is known to be wrong is paid.",
    Outcome.FALSE_REJECTING: "A harmless variation of the right answer is refused, though the answer is paid.",
    Outcome.FLAKY: "The same submission is paid at one time and not at another.",
    Outcome.INCONCLUSIVE: "Right cannot be told from nothing here, so the task was not judged.",
    Outcome.NOT_REPRODUCED: "The task could not be set up here, which says nothing about the task.",
    Outcome.NOT_ASSESSED: "What it takes to judge the task is missing.",
    Outcome.SOUND: "The reference is paid, and nothing that was tried beside it.",
}
"""Worst first."""

GRAVE = frozenset({Outcome.UNSOLVABLE, Outcome.TRIVIALLY_PASSABLE, Outcome.EXPLOITABLE})
DEFECTS = GRAVE | {Outcome.WEAK_VERIFIER, Outcome.FALSE_REJECTING, Outcome.FLAKY}
"""What is wrong with a task; every other outcome but `sound` says that it was not judged."""

_RANK = {outcome: rank for rank, outcome in enumerate(MEANINGS)}


def rank(outcome: Outcome) -> int:
    """0 is the worst."""
    return _RANK[outcome]
