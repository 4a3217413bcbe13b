"""Rules about instruction.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from inspector.environments.lint.hints import INSTRUCTION, Found, Rules, Subject, rule_of

RULES: Rules = []
rule = partial(rule_of, RULES)
SHORT, LONG = 40, 6000  # characters; the longest is about 1,500 tokens
PLACEHOLDER = re.compile(
    r"\b(?-i:TODO|FIXME|TBD|XXX)\b|\blorem ipsum\b|<(?:your|insert|describe|fill)[^>]{0,40}>|\[(?:insert|describe|your)[^\]]{0,40}\]", re.IGNORECASE
)
HIDDEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
INJECTION = re.compile(
    r"\b(?:ignore|disregard|forget)\s+(?:all\s+|any\s+|the\s+)?(?:previous|prior|above|earlier)\s+(?:instructions|prompts?|rules)|\byou\s+are\s+now\s+(?:in\s+)?(?:developer|admin|dan)\b",
    re.IGNORECASE,
)
FILE = re.compile(r"""["'](/(?:app|workspace|data|home|output|srv|root|work)/[\w./-]*\.\w{1,6})["']""")


@rule("instruction-too-short", proved_by="rollout")
def instruction_too_short(subject: Subject) -> Iterator[Found]:
    """Too few words to say what is wanted."""
    if INSTRUCTION in subject.tree and len(subject.instruction.strip()) < SHORT:
        yield Found(INSTRUCTION, 1, f"{len(subject.instruction.strip())} characters")


@rule("instruction-too-long", proved_by="rollout")
def instruction_too_long(subject: Subject) -> Iterator[Found]:
    """So long that it prescribes, or that its point is lost."""
    if len(subject.instruction) > LONG:
        yield Found(INSTRUCTION, 1, f"{len(subject.instruction)} characters, more than {LONG}")


@rule("instruction-placeholder", proved_by="rollout")
def instruction_placeholder(subject: Subject) -> Iterator[Found]:
    """A part that was to be written later."""
    for number, line in enumerate(subject.instruction.splitlines(), 1):
        if found := PLACEHOLDER.search(line):
            yield Found(INSTRUCTION, number, f"placeholder {found[0][:40]!r}")


@rule("hidden-unicode", proved_by="exploit/judge_injection")
def hidden_unicode(subject: Subject) -> Iterator[Found]:
    """Characters that a person does not see, and a model reads."""
    for number, line in enumerate(subject.instruction.removeprefix("\ufeff").splitlines(), 1):
        if found := HIDDEN.search(line):
            yield Found(INSTRUCTION, number, f"invisible character U+{ord(found[0]):04X}")


@rule("prompt-injection", proved_by="exploit/judge_injection")
def prompt_injection(subject: Subject) -> Iterator[Found]:
    """Words in the task's files that speak to the model and not of the task."""
    for file in subject.tree.files:
        if file.path.startswith("environment/") or file.path == INSTRUCTION:
            for number, line in enumerate(subject.text(file.path).splitlines(), 1):
                if found := INJECTION.search(line):
                    yield Found(file.path, number, f"speaks to the model: {found[0][:60]!r}")


@rule("file-not-mentioned", proved_by="rollout")
def file_not_mentioned(subject: Subject) -> Iterator[Found]:
    """The verifier looks at a file that neither the instruction nor the image names: no agent can know of it."""
    told = subject.instruction + "".join(subject.text(file.path) for file in subject.tree.below("environment"))
    seen: set[str] = set()
    for path, text in subject.test_texts():
        for number, line in enumerate(text.splitlines(), 1):
            for name in FILE.findall(line):
                if name not in seen and name.rpartition("/")[2] not in told:
                    seen.add(name)
                    yield Found(path, number, f"{name[:100]} is asked for, and nowhere mentioned")
