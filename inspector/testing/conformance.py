"""The common suite for checks: `assert_conforms(check)` holds for ours as for those of domain teams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from inspector.check import (
    LATE_NEEDS,
    Baselines,
    Batch,
    Check,
    Declaration,
    Example,
    Finding,
    Group,
    History,
    Inconclusive,
    NotAssessed,
    Payments,
    Probed,
    misfit,
    text_at,
)
from inspector.task import LimitsDeclaration, RewardDeclaration
from inspector.testing.episodes import admitted, odd_trajectories
from inspector.trajectory import Trajectory
from inspector.verdict import Outcome

_BOUNDS = ("ge", "gt", "le", "lt", "max_length")
_WORDS = 3  # an example's name says why it is clean or flagged
_FULL = Declaration(
    reward=RewardDeclaration(min=0, max=1, paid_at=1, weights={"tests": 0.8, "style": 0.2}),
    reference_tests=12,
    protected=["tests/**"],
    limits=LimitsDeclaration(steps=200, seconds=1800),
)


class Nonconforming(AssertionError):
    """A check breaks the common rules; the message lists all that was found."""

    def __init__(self, check: Check, complaints: Sequence[str]) -> None:
        super().__init__("\n".join([f"{_label(check)} does not conform:", *(f"  - {complaint}" for complaint in complaints)]))


def assert_conforms(check: Check) -> None:
    """Raise Nonconforming where the check breaks a common rule; what the check itself raises passes through, with a note of where.

    Its docstring and its examples say what it means: at least one flagged, and one clean that nearly is. It answers its
    examples as they say, the same twice, changes nothing, points at text that is there, and answers a corpus of odd
    records. What needs a sandbox or a judge is tested on its form alone.
    """
    complaints = list(_form(check))
    if not any(need in LATE_NEEDS for need in check.needs):
        cases = [*_examples(check), *_odd(check)]
        complaints += [complaint for case in cases for complaint in _answers(check, case)]
        complaints += _together(check, cases)
    if complaints:
        raise Nonconforming(check, complaints)


# --- form ------------------------------------------------------------------------------------------------------------


def _form(check: Check) -> Iterator[str]:
    if not check.title.endswith("."):
        yield f"the first line of its docstring is no sentence: {check.title!r}"
    if not check.flagged:
        yield "it has no flagged example"
    if not check.clean:
        yield "it has no clean example: give the near miss that it must not flag"
    names = [shown.name for shown in (*check.clean, *check.flagged)]
    yield from (f"the example {name!r} does not say in {_WORDS} words or more why it is clean or flagged" for name in names if len(name.split()) < _WORDS)
    yield from (f"two examples are named {name!r}" for name in dict.fromkeys(names) if names.count(name) > 1)
    hints = get_type_hints(check.function, include_extras=True)
    yield from (f"the number {name!r} has no bound: write Annotated[…, msgspec.Meta(ge=…)]" for name in check.parameters if _unbounded(hints[name]))


def _unbounded(kind: Any) -> bool:
    plain, *metas = get_args(kind) if get_origin(kind) is Annotated else (kind,)
    return plain in (int, float) and not any(getattr(meta, bound, None) is not None for meta in metas for bound in _BOUNDS)


# --- answers ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Case:
    """A subject with what it needs, and the outcome that is expected (None: any)."""

    name: str
    trajectories: tuple[Trajectory, ...]
    expected: Outcome | None = None
    declaration: Declaration = field(default_factory=Declaration)
    history: History = field(default_factory=History)
    baselines: Baselines = field(default_factory=Baselines)
    probed: Probed = field(default_factory=Probed)
    payments: Payments = field(default_factory=Payments)


class _Answer(NamedTuple):
    outcome: Outcome
    findings: list[Any]
    note: str


def _answers(check: Check, case: _Case) -> Iterator[str]:
    before = _state(case)
    answer, again = _answer(check, case), _answer(check, case)
    if answer != again:
        yield f"{case.name}: asked twice it answered {_told(answer)}, then {_told(again)}"
    if _state(case) != before:
        yield f"{case.name}: it changed its subject"
    if case.expected not in (None, answer.outcome):
        yield f"{case.name}: it answered {_told(answer)}"
    transcript = None if check.subject is Group else case.trajectories[0]
    yield from (f"{case.name}: {fault}" for finding in answer.findings if (fault := misfit(finding, transcript) or _misquoted(finding, transcript)))


def _answer(check: Check, case: _Case) -> _Answer:
    findings: list[Any] = []
    withheld: Exception | None = None
    with _Noting(f"while {_label(check)} judged: {case.name}"):
        try:
            for said in _call(check, [case]):
                answer = said[1] if check.subject is Batch else said
                if isinstance(answer, (NotAssessed, Inconclusive)):
                    withheld = answer
                else:
                    findings.append(answer)
        except (NotAssessed, Inconclusive) as reason:
            withheld = reason
    return _Answer(_outcome(findings, withheld), findings, str(withheld or ""))


def _call(check: Check, cases: Sequence[_Case]) -> Any:
    first = cases[0]
    given: Mapping[type, Any] = {
        Declaration: first.declaration,
        History: first.history,
        Baselines: first.baselines,
        Probed: first.probed,
        Payments: first.payments,
    }
    if check.subject is Batch:
        given = {
            Declaration: [case.declaration for case in cases],
            History: cases[0].history,
            Baselines: [case.baselines for case in cases],
            Probed: [case.probed for case in cases],
            Payments: [case.payments for case in cases],
        }
        subject: Any = Batch([case.trajectories[0] for case in cases])
    elif check.subject is Group:
        subject = Group(cases[0].name, cases[0].trajectories)
    else:
        subject = cases[0].trajectories[0]
    return check(subject, *(given[need] for need in check.needs))


def _outcome(findings: Sequence[Any], withheld: Exception | None) -> Outcome:
    if findings:
        return Outcome.FLAGGED
    if withheld is None:
        return Outcome.CLEAN
    return Outcome.NOT_ASSESSED if isinstance(withheld, NotAssessed) else Outcome.INCONCLUSIVE


def _misquoted(finding: Finding, transcript: Trajectory | None) -> str | None:
    if not finding.message.strip():
        return "a finding has no message"
    for span in finding.spans if transcript else ():
        text = text_at(transcript, span) or "" if transcript else ""
        if span.quote and span.quote != text[span.start : span.end]:
            return f"the span [{span.start}, {span.end}) of {span.field!r} quotes {span.quote[:80]!r}, and there stands {text[span.start : span.end][:80]!r}"
    return None


def _together(check: Check, cases: Sequence[_Case]) -> list[str]:
    """A batch is for speed alone: each must get the answer that it gets by itself."""
    plain = [case for case in cases if case.expected is None]
    if check.subject is not Batch or any(_answer(check, case).note for case in plain):
        return []
    said = [(id(subject), answer) for subject, answer in _call(check, plain)]
    return [
        f"{case.name}: in a batch it gets another answer than alone"
        for case in plain
        if [answer for subject, answer in said if subject == id(case.trajectories[0])] != _answer(check, case).findings
    ]


# --- cases -----------------------------------------------------------------------------------------------------------


def _examples(check: Check) -> Iterator[_Case]:
    yield from (_example(shown, Outcome.CLEAN, "clean") for shown in check.clean)
    yield from (_example(shown, Outcome.FLAGGED, "flagged") for shown in check.flagged)


def _example(shown: Example, expected: Outcome, kind: str) -> _Case:
    name = f"{kind} example {shown.name!r}"
    with _Noting(f"while reading the {name}"):
        posted = tuple(admitted(envelope) for envelope in shown.posted)
        declaration = msgspec.convert(shown.declaration, Declaration)
    return _Case(name, posted, expected, declaration, shown.history, shown.baselines, shown.probed, shown.payments)


def _odd(check: Check) -> Iterator[_Case]:
    for name, odd in odd_trajectories().items():
        yield _Case(f"odd record, {name}", (odd,))
        yield _Case(f"odd record under a full declaration, {name}", (odd,), declaration=_FULL)
    if check.subject is Group:
        yield _Case("a group of odd records", tuple(odd_trajectories().values()))


# --- words -----------------------------------------------------------------------------------------------------------


class _Noting:
    """Adds to whatever is raised inside a note of where it was."""

    def __init__(self, note: str) -> None:
        self._note = note

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            error.add_note(self._note)


def _state(case: _Case) -> str:
    return repr([(each.header, each.document, each.defects, each.unknown) for each in case.trajectories] + [case.declaration])


def _told(answer: _Answer) -> str:
    messages = "; ".join(getattr(finding, "message", repr(finding)) for finding in answer.findings)
    return f"{answer.outcome.word} ({messages or answer.note or 'no finding'})"


def _label(check: Check) -> str:
    return check.name or check.function.__name__
