"""Tells whose fault a failed reference is, and joins hits that have one root cause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from inspector.environments import boxes
from inspector.environments.protocol import Kind, Trouble
from inspector.probe.attempts import shown
from inspector.probe.trials import Hit
from inspector.probe.words import Evidence, Outcome, Run, TaskReport

ALIKE = 3  # tasks, at least, that all fail in one way before it says more of our set-up than of them
OURS = re.compile(  # what a verifier or a reference prints where the machine lacks something; the last lines alone are read
    r"ModuleNotFoundError: No module named '(?P<module>[\w.]+)'"
    r"|: command not found|: not found$|No such file or directory: '(?:git|node|npm|curl|gcc|make|psql|java|go|cargo|Rscript)'"
    r"|Network is unreachable|Temporary failure in name resolution|Could not resolve host|Name or service not known"
    rf"|{re.escape(boxes.OUR_MEMORY)}"
    r"|No space left on device|Cannot allocate memory|MemoryError|Resource temporarily unavailable|Read-only file system|Operation not permitted",
    re.MULTILINE,
)
ONE_PROCESS = (
    "Programs run in one process with the tests that judge them, as is usual for such rows: one that looks for its judge there can be paid "
    "whatever the tests compare. This is so of every task alike, and held against none."
)
LAST = 1500  # characters of what was printed
PLAIN_REFUSAL = re.compile(r"^AssertionError\b")  # an assertion that does not hold is a verifier's own word


def our_fault(run: Run, names: Iterable[str] = ()) -> str | None:
    """What the machine lacks, as a failed run says it; None where it says nothing of the kind. `names` are modules that the task itself should bring."""
    found = OURS.search(run.detail[-LAST:])
    if found is None or (found["module"] and found["module"].split(".")[0] in set(names)):
        return None
    return found[0].strip()[:200]


def outcome_of(trouble: Trouble) -> Outcome:
    """What it means that a reference has no grade for a reason that is not the verifier's."""
    return Outcome.NOT_REPRODUCED if trouble is Trouble.NOT_BUILT else Outcome.NOT_ASSESSED


def last_line(text: str) -> str:
    """The last line that says something, numbers and addresses left out."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return re.sub(r"0x[0-9a-f]+|\d+", "#", lines[-1])[:200] if lines else ""


def evidence(hits: Sequence[Hit], reproduce: str) -> list[Evidence]:
    """One for each root cause, the first hit as its proof."""
    grouped: dict[str, list[Hit]] = {}
    for hit in hits:
        grouped.setdefault(hit.attempt.cause, []).append(hit)
    return [_joined(group, reproduce) for group in grouped.values()]


def _joined(hits: Sequence[Hit], reproduce: str) -> Evidence:
    first = hits[0]
    return Evidence(
        outcome=first.attempt.outcome,
        probe=first.attempt.probe,
        claim=first.attempt.claim,
        proof=f"{shown(first.attempt.submission)}\n{counted(first)}",
        detail=first.runs[0].detail,
        also=tuple(hit.attempt.probe for hit in hits[1:]),
        reproduce=reproduce,
    )


def counted(hit: Hit) -> str:
    """How often an attempt and its control were paid."""
    control = f"; without its exploit {sum(run.paid for run in hit.controls)} of {len(hit.controls)}" if hit.controls else ""
    return f"paid {sum(run.paid for run in hit.runs)} of {len(hit.runs)} times{control}"


def suspect_ourselves(tasks: Sequence[TaskReport], *, one_verifier: bool) -> tuple[Sequence[TaskReport], list[str]]:
    """The same reports where tasks fail in ways of their own; else, with what is said of the version, as not reproduced.

    Where all tasks have one verifier they fail alike by nature: then it is said, and the outcomes stand.
    """
    failed = [task for task in tasks if _failed(task)]
    if len(tasks) < ALIKE or len(failed) < len(tasks):
        return tasks, []
    ways = {_way(task) for task in failed}
    if len(ways) > 1:
        return tasks, []
    how = f"Every one of the {len(tasks)} tasks fails alike ({next(iter(ways))[:160]}): our own set-up is the first suspect."
    if one_verifier or PLAIN_REFUSAL.match(next(iter(ways))) or not all(Outcome.UNSOLVABLE in task.outcomes for task in tasks):
        return tasks, [how]
    return [_not_reproduced(task, how) for task in tasks], [how]


def of_the_kind(kinds: Iterable[Kind], tasks: Sequence[TaskReport]) -> list[str]:
    """What is so of every task of these kinds by nature, and is held against none; nothing where nothing was ever paid."""
    paid = any(run.paid for task in tasks for run in task.runs)
    return [ONE_PROCESS] if paid and set(kinds) == {Kind.CODE} else []


def _failed(task: TaskReport) -> bool:
    return bool({Outcome.UNSOLVABLE, Outcome.NOT_REPRODUCED} & set(task.outcomes)) or any(run.trouble for run in task.runs[:1])


def _way(task: TaskReport) -> str:
    first = next(iter(task.runs), None)
    if first is None:
        return "nothing was run"
    if first.trouble is not None and first.trouble is not Trouble.MALFORMED:
        return str(first.trouble)
    return last_line(first.detail) or (f"reward {first.reward}")


def _not_reproduced(task: TaskReport, why: str) -> TaskReport:
    kept = tuple(each for each in task.evidence if each.outcome is not Outcome.UNSOLVABLE)
    outcomes = tuple(dict.fromkeys(Outcome.NOT_REPRODUCED if each is Outcome.UNSOLVABLE else each for each in task.outcomes))
    probabilities = {name: value for name, value in task.probabilities.items() if name != Outcome.UNSOLVABLE}
    return msgspec.structs.replace(task, outcomes=outcomes, evidence=kept, probabilities=probabilities, notes=(*task.notes, why))


def last_words(run: Run) -> str:
    """The end of what a run printed, on one line."""
    return " ".join(run.detail.split())[-300:]
