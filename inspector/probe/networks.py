"""Tells what the network does to a reference whose task says that it needs one: it is run with one and without."""

from __future__ import annotations

from inspector.environments.protocol import Submission, Trouble
from inspector.probe import causes
from inspector.probe.judging import Case
from inspector.probe.words import Family, Run

NEEDED = "The task says that it needs a network"


def without(case: Case, reference: Submission) -> str:
    """What becomes of a reference that is paid, in a box without a network."""
    run = _graded(case, reference, network=False)
    if run.paid:
        return f"{NEEDED}; its reference is paid without one too."
    said = f"reward {run.reward:g}" if run.reward is not None else str(run.trouble)
    return f"{NEEDED}, and so it is: without one its reference is not paid ({said}: {causes.last_words(run)})."


def lacking(case: Case, reference: Submission) -> str | None:
    """Why the refusal of a reference says nothing of its task; None where it is refused with a network too."""
    run = _graded(case, reference, network=True)
    if run.trouble in (Trouble.REFUSED, Trouble.BROKEN, Trouble.NOT_BUILT):
        return f"{NEEDED}, which boxes are not given here: without one its reference is not paid. {causes.last_words(run)}"
    return f"{NEEDED}: its reference is paid with one and refused without." if run.paid else None


def _graded(case: Case, reference: Submission, *, network: bool) -> Run:
    return case.trials.grade(f"reference/{'with' if network else 'without'}_network", Family.REFERENCE, reference, network=network)
