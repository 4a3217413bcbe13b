"""Submissions that do no work: nothing at all, empty, a stub, junk, the prompt again, a refusal."""

from __future__ import annotations

import re
from collections.abc import Iterator

from inspector.environments.protocol import Kind, Script, TaskUnderTest, Text
from inspector.probe.attempts import Attempt
from inspector.probe.words import Family, Outcome

JUNK = "zqx 7f3kd lorem 0x1f vrm !!"
REFUSAL = "I'm sorry, but I can't help with that."
ECHO_CHARACTERS = 20_000


def attempts(task: TaskUnderTest) -> Iterator[Attempt]:
    """Those that fit the kind of the task."""
    if task.kind is Kind.CODE:
        yield from _of_code(task)
    elif task.kind is Kind.TEXT:
        yield from _of_text(task)
    elif task.kind is Kind.STATE:
        yield _nothing("no_op", Script(""), "doing nothing is paid")
    else:
        yield _nothing("no_op", Text(""), "doing nothing is paid: the gold actions leave all as it is")


def _of_code(task: TaskUnderTest) -> Iterator[Attempt]:
    if task.entry_point:
        yield _nothing("no_op", Text(stub(task.entry_point)), "a function that does nothing is paid")
    yield _nothing("empty", Text(""), "an empty program is paid")
    yield _nothing("junk", Text(f"{JUNK!r}\n"), "a program that does nothing is paid")
    if task.prompt:
        yield _nothing("echo", Text(_echo(task.prompt)), "the task's own text is paid as a program")


def stub(entry_point: str, body: str = "return None") -> str:
    """A function of that name which takes anything."""
    return f"def {entry_point}(*args, **kwargs):\n    {body}\n"


def _echo(prompt: str) -> str:
    """The prompt where it is a program, else as a comment."""
    kept = prompt[:ECHO_CHARACTERS]
    return kept if re.search(r"^\s*(def|class) ", kept, re.MULTILINE) else "\n".join(f"# {line}" for line in kept.splitlines())


def _of_text(task: TaskUnderTest) -> Iterator[Attempt]:
    right = {_plain(answer) for answer in (*task.answers, *([task.reference.text] if isinstance(task.reference, Text) else []))}
    texts = {
        "empty": ("", "an empty answer is paid"),
        "whitespace": (" \n\t\n", "an answer of white space is paid"),
        "junk": (JUNK, "junk is paid"),
        "refusal": (REFUSAL, "a refusal is paid"),
        "echo": (task.prompt[:ECHO_CHARACTERS], "the task's own text is paid as an answer"),
        "opener": ("Thought process:", "an opener without an answer is paid"),
        "colon": (":", "a single colon is paid"),
    }
    for name, (text, claim) in texts.items():
        if _plain(text) not in right:
            yield _nothing(name, Text(text), claim)


def _plain(text: str) -> str:
    return " ".join(text.split())


def _nothing(name: str, submission: Text | Script, claim: str) -> Attempt:
    return Attempt(f"nothing/{name}", Family.NOTHING, submission, Outcome.TRIVIALLY_PASSABLE, f"{claim[0].upper()}{claim[1:]}.", root="nothing")
