"""Turns what the probes of a task found into its outcomes, with evidence, probabilities and what could not be told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from inspector.probe import causes
from inspector.probe.attempts import Attempt
from inspector.probe.sequential import posterior, smallest_seen
from inspector.probe.trials import Hit, Trials
from inspector.probe.words import Evidence, Family, Hint, Outcome, Run, TaskReport

ORDER = tuple(Outcome)


@dataclass
class Case:
    """What is known of a task while the ladder is climbed."""

    trials: Trials
    reproduce: str
    outcomes: set[Outcome] = field(default_factory=set)
    evidence: list[Evidence] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    probabilities: dict[str, float] = field(default_factory=dict)
    hits: list[Hit] = field(default_factory=list)

    def hold(self, outcome: Outcome, probe: str, claim: str, proof: str, detail: str = "", also: Sequence[str] = ()) -> None:
        """An outcome holds, with its evidence."""
        self.outcomes.add(outcome)
        self.evidence.append(Evidence(outcome=outcome, probe=probe, claim=claim, proof=proof, detail=detail, also=tuple(also), reproduce=self.reproduce))

    def tell(self, outcome: Outcome, note: str) -> None:
        """An outcome that accuses nobody."""
        self.outcomes.add(outcome)
        self.notes.append(note)

    def withdraw(self, outcome: Outcome) -> None:
        """It does not hold after all."""
        self.outcomes.discard(outcome)
        self.evidence = [each for each in self.evidence if each.outcome is not outcome]
        self.probabilities.pop(outcome, None)

    def try_all(self, attempts: Iterable[Attempt]) -> bool:
        """Make attempts, those of a root cause that is proven left out. False where the verifier turned out to pay by chance."""
        for attempt in attempts:
            if any(hit.attempt.cause == attempt.cause for hit in self.hits):
                continue
            hit = self.trials.hit(attempt)
            if hit is not None and hit.by_chance and attempt.machine:
                continue  # it runs a race with the verifier, which says nothing about chance
            if hit is not None and hit.by_chance:
                self.by_chance(hit.attempt.probe, hit.runs if not hit.steady else hit.controls)
                return False
            if hit is not None and hit.proven:
                self.note(hit) if attempt.noted or attempt.machine else self.hits.append(hit)
        return True

    def note(self, hit: Hit) -> None:
        """Tell what is paid but may be within the rules, or is open to all that share a machine with their verifier."""
        why = (
            "whoever works as root beside the verifier can do so: grade in a separate environment"
            if hit.attempt.machine
            else "told only, as it may be meant so"
        )
        self.notes.append(f"{hit.attempt.probe}: {hit.attempt.claim} ({causes.counted(hit)}; {why})")

    def by_chance(self, probe: str, runs: Sequence[Run]) -> None:
        """The same submission was paid and refused: nothing else of this task can be told."""
        self.hits.clear()
        self.outcomes.clear()
        self.evidence.clear()
        graded = [run for run in runs if run.trouble is None]
        paid = sum(run.paid for run in graded)
        proof = f"rewards of the same submission: {', '.join(f'{run.reward:g}' for run in graded if run.reward is not None)}"
        self.hold(
            Outcome.FLAKY, probe, f"The same submission was paid {paid} of {len(graded)} times.", proof, next(run.detail for run in graded if not run.paid)
        )
        self.probabilities[Outcome.FLAKY] = posterior(min(paid, len(graded) - paid), len(graded)).mean

    def report(self, hints: Sequence[Hint]) -> TaskReport:
        """All of it."""
        proven = causes.evidence(self.hits, self.reproduce)
        outcomes = self.outcomes | {each.outcome for each in proven}
        evidence = [*self.evidence, *proven]
        runs = self.trials.runs
        return TaskReport(
            task=self.trials.task.id,
            outcomes=tuple(sorted(outcomes or {Outcome.SOUND}, key=ORDER.index)),
            probabilities={str(name): round(value, 4) for name, value in self.probabilities.items()},
            evidence=tuple(evidence),
            hints=tuple(tested(hint, runs, evidence) for hint in hints),
            notes=(*self.trials.task.notes, *self.notes, *_null(runs, evidence)),
            runs=tuple(runs),
            cpu_s=round(sum(run.cpu_s for run in runs), 4),
            wall_s=round(sum(run.wall_s for run in runs), 4),
            reproduce=self.reproduce,
        )


def tested(hint: Hint, runs: Sequence[Run], evidence: Sequence[Evidence]) -> Hint:
    """A hint with what the probe that tests it found."""
    name = hint.tested_by
    if name is None:
        return hint
    found = any(name in _words(probe) for each in evidence for probe in (each.probe, *each.also))
    ran = any(name in _words(run.probe) for run in runs)
    return Hint(rule=hint.rule, path=hint.path, line=hint.line, message=hint.message, tested_by=name, confirmed=True if found else False if ran else None)


def _words(probe: str) -> set[str]:
    """A probe's name, its parts, and the part without a number behind it."""
    parts = probe.split("/")
    return {probe, *parts, parts[-1].rstrip("0123456789").rstrip("_")}


def _null(runs: Sequence[Run], evidence: Sequence[Evidence]) -> list[str]:
    """What the runs that found nothing could have seen."""
    notes = []
    steady = [run for run in runs if run.probe == "reference" and run.trouble is None]
    if steady and all(run.paid for run in steady):
        seen = smallest_seen(len(steady))
        notes.append(f"The reference was paid {len(steady)} of {len(steady)} times: refusals rarer than {seen:.0%} could have gone unseen (95 %).")
    for family, what in ((Family.EXPLOIT, "exploits"), (Family.WRONG, "wrong submissions")):
        probes = {run.probe for run in runs if run.family is family and not run.probe.endswith(("/control", "/differences"))}
        if probes and not any(run.paid for run in runs if run.family is family):
            notes.append(f"None of {len(probes)} {what} was paid: a share above {smallest_seen(len(probes)):.0%} of such would have been seen (95 %).")
    return notes
