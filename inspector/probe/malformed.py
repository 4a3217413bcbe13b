"""Answers that a verifier must refuse without falling over."""

from __future__ import annotations

from inspector.environments.protocol import Text, Trouble
from inspector.probe.trials import Trials
from inspector.probe.words import Family, Run

PLAIN = {"absent": Text("", absent=True)} | {  # as a model may well write them: a verifier that falls over one of these is at fault
    "words": Text("I am not sure, perhaps the answer is something else."),
    "brackets": Text('{"answer": [1, 2'),
    "punctuation": Text("?!,;:"),
    "number": Text("-1"),
}
HOSTILE = {  # told only
    "nul": Text("4\x002"),
    "surrogate": Text("4\ud8002"),
    "digits": Text("9" * 5000),
    "long": Text("word " * 40_000),
    "nested": Text("(" * 20_000),
}


def falls(trials: Trials, *, hostile: bool) -> tuple[list[tuple[str, Text, Run]], list[str]]:
    """The plain answers (name, text, run) at which the verifier ended without a reward each time, and the names of hostile ones where it did."""
    plain = [(name, text, run) for name, text in PLAIN.items() if (run := _fallen(trials, name, text)) is not None]
    return plain, [name for name, text in (HOSTILE if hostile else {}).items() if _fallen(trials, name, text) is not None]


def _fallen(trials: Trials, name: str, text: Text) -> Run | None:
    for _ in range(2):
        run = trials.grade(f"malformed/{name}", Family.MALFORMED, text)
        if run.trouble not in (Trouble.MALFORMED, Trouble.TIMED_OUT):
            return None
    return run
