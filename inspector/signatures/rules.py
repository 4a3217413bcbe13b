"""Makes a check of every rule of every pack; all of them ask one scanner, and their examples are tried before they count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from inspector import gates
from inspector.check import Batch, Check, Finding, Span, Trajectory
from inspector.signatures.examples import examples
from inspector.signatures.packs import CompiledRule, Pack, read_file
from inspector.signatures.scanner import Scanner, Sought

MESSAGE_QUOTE = 120  # characters of what was found that a message repeats


class Fault(NamedTuple):
    """A rule whose examples are not answered as it says."""

    check: Check
    reason: str


class Rulebook:
    """The rules of many packs."""

    def __init__(self) -> None:
        self._scanner, self._plain = Scanner(), Scanner(fast=False)
        self._rules: list[tuple[str, Check, Check]] = []  # pack, as it is asked, as it is tried without hyperscan

    def read(self, path: Path) -> list[Check]:
        """The checks of one pack. Raises BadPack with every fault of the file."""
        return self.take(read_file(path))

    def take(self, pack: Pack) -> list[Check]:
        """The checks of one pack."""
        checks = checks_of(pack, self._scanner)
        self._rules += zip([pack.source] * len(checks), checks, checks_of(pack, self._plain), strict=True)
        return checks

    def faults(self) -> list[Fault]:
        """Tries every example of every rule, with hyperscan where it is installed and without."""
        shown = [_Shown(check) for _, check, _ in self._rules]
        batch = Batch([trajectory for one in shown for trajectory, _, _ in one.trajectories])
        return [
            Fault(check, f"{source}: rule {check.function.__name__!r}: {reason}")
            for (source, check, plain), one in zip(self._rules, shown, strict=True)
            for reason in one.faults(batch, check, plain)
        ]


class _Shown:
    """A rule's examples as a scanner reads them."""

    def __init__(self, check: Check) -> None:
        kinds = ((check.flagged, True), (check.clean, False))
        self.trajectories = [(_read(shown.posted[0]), shown.name, flagged) for kind, flagged in kinds for shown in kind]

    def faults(self, batch: Batch, check: Check, plain: Check) -> Iterator[str]:
        answers, others = _answers(check, batch), _answers(plain, batch)
        if answers != others:
            yield "hyperscan and RE2 find different things in the examples"
        for trajectory, name, flagged in self.trajectories:
            if (id(trajectory) in answers) != flagged:
                yield f"the {'flagged' if flagged else 'clean'} example {name!r} is {'not flagged' if flagged else f'flagged: {answers[id(trajectory)]}'}"


def _read(posted: object) -> Trajectory:
    return gates.read(msgspec.json.encode(posted))


def _answers(check: Check, batch: Batch) -> dict[int, str]:
    answers: Iterable[tuple[Trajectory, Finding]] = check.function(batch)  # type: ignore[assignment]
    return {id(trajectory): finding.message for trajectory, finding in answers}


def checks_of(pack: Pack, scanner: Scanner) -> list[Check]:
    """One check a rule, named as the rule's id."""
    return [_check(rule, pack, scanner) for rule in pack.rules]


def _check(compiled: CompiledRule, pack: Pack, scanner: Scanner) -> Check:
    rule = compiled.rule
    number = scanner.add(Sought(compiled.patterns, compiled.unless, frozenset(rule.where)))

    def judge(batch: Batch) -> Iterator[tuple[Trajectory, Finding]]:
        for trajectory, spans in scanner.found(batch, number):
            yield trajectory, _finding(rule.title, rule.score, spans)

    judge.__name__ = judge.__qualname__ = rule.id
    judge.__module__ = pack.source
    judge.__doc__ = f"{rule.title}\n\n{rule.why}" if rule.why else rule.title
    return Check(judge, rule.version, rule.tier, rule.cause, Batch, (), {}, examples(rule.clean), examples(rule.flagged))


def _finding(title: str, score: float, spans: Sequence[Span]) -> Finding:
    shown = [span for span in spans if span.field != "reasoning_content"]  # what can be shown to a trainer goes first
    kept = tuple(shown or spans)
    quote = " ".join(kept[0].quote.split())[:MESSAGE_QUOTE]
    return Finding(message=f"{title.rstrip('.')}: {quote}", score=score, spans=kept, from_reasoning=not shown)
