"""Submissions known to be wrong: mutants that provably behave otherwise, wrong answers in the right form, and right ones taken back."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence

from inspector.environments.protocol import TaskUnderTest, Text
from inspector.probe.attempts import Attempt
from inspector.probe.exploits import code
from inspector.probe.mutants import MARK, differential, mutants, read_differences
from inspector.probe.trials import Trials
from inspector.probe.words import Family, Outcome

NUMBER = re.compile(r"\s*[-+]?\d[\d,]*(?:\.\d+)?\s*")


def programs(trials: Trials, reference: Text, wanted: int) -> Iterator[Attempt]:
    """Mutants of a program, each with an input on which it answers otherwise, and the table of the tests' own cases."""
    task = trials.task
    if (table := code.hollow(task)) is not None:
        yield table
    if task.entry_point is None:
        return
    chosen = mutants(reference.text, task.entry_point, task.tests, trials.seed)
    mark = f"{MARK}{secrets.token_hex(4)}:"
    program = differential(task, reference.text, chosen, trials.seed, mark)
    if program is None:
        return
    said = trials.grade("wrong/differences", Family.WRONG, Text(program)).detail
    for number, each in enumerate(read_differences(said, chosen, mark)[:wanted], 1):
        claim = (
            f"A wrong program is paid: {each.mutant.what}; it answers otherwise on {each.different} of {each.inputs} inputs near the tests' own, "
            f"as on {each.example}."
        )
        yield Attempt(f"wrong/mutant_{number}", Family.WRONG, Text(each.mutant.text), Outcome.WEAK_VERIFIER, claim, root="mutant")


def number_of(text: str) -> float | None:
    """The number that an answer is, None where it is something else."""
    return float(text.replace(",", "")) if NUMBER.fullmatch(text) else None


def answers(task: TaskUnderTest, right: str, others: Sequence[str]) -> tuple[list[Attempt], list[Attempt]]:
    """Wrong answers in the form of the right one: those that hold it as a part, and those that do not."""
    value = number_of(right)
    if value is None:
        apart = [other for other in dict.fromkeys(others) if _plain(other) not in _plain(right) and _plain(right) not in _plain(other)][:4]
        holding = [f"xq{right.strip()}qx", f"un{right.strip()}ness"] if re.fullmatch(r"\w+", right.strip()) else []
    else:
        shown = right.strip()
        apart = [_like(shown, value * 3 + 17), _like(shown, value + 1000 + abs(value)), _like(shown, -value - 7), _like(shown, value * 0.1 - 31)]
        holding = [f"9{shown}", f"{shown}7", f"8{shown}3"] if re.fullmatch(r"\d+", shown) else []
    return _wrong("containing", holding), _wrong("format", apart)


def _like(shown: str, value: float) -> str:
    decimals = len(shown.partition(".")[2])
    return f"{value:.{decimals}f}"


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _wrong(name: str, texts: Sequence[str]) -> list[Attempt]:
    claims = {"format": "Wrong answers in the right form are paid.", "containing": "Wrong answers that hold the right one as a part are paid."}
    probe = {"format": "wrong_format", "containing": "wrong_containing"}[name]
    return [
        Attempt(f"wrong/{probe}_{number}", Family.WRONG, Text(text), Outcome.WEAK_VERIFIER, claims[name], root=probe) for number, text in enumerate(texts, 1)
    ]


def retracted(right: str, other: str) -> Attempt:
    """The right answer, then taken back for a wrong one."""
    text = f"The answer is {right.strip()}. No, that is wrong. I take it back: the answer is {other.strip()}."
    claim = "The right answer is paid although it was taken back for a wrong one."
    return Attempt("wrong/retracted", Family.WRONG, Text(text), Outcome.WEAK_VERIFIER, claim, root="retracted")
