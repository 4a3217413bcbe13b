"""Rows that are answered in words, as tasks: the prompt, and what the row itself names as right."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from inspector.environments.protocol import Grade, Kind, TaskUnderTest, Text, Trouble, Unreadable
from inspector.environments.rows import Row, unique

PROMPTS = ("prompt", "question", "input", "problem")
WHOLE = ("reference", "completion", "chosen")  # what a policy would say, as it stands
LABELS = ("answer", "solution", "ground_truth", "target", "label")  # perhaps less than what the verifier wants to read
TRIED = 3  # rows, of which one must be paid in a form before the form is taken for all
T = TypeVar("T")
FORMS = ("{}", "\\boxed{{{}}}", "<answer>{}</answer>", "#### {}", "The answer is {}.", "```\n{}\n```")


@dataclass(frozen=True, slots=True)
class Question:
    """A row in our words."""

    id: str
    prompt: Any  # a text, or messages
    columns: Mapping[str, Any]
    reference: str | None  # whole
    labels: tuple[str, ...]

    @property
    def text(self) -> str:
        """The prompt, for people and probes."""
        return self.prompt if isinstance(self.prompt, str) else "\n\n".join(_content(message) for message in self.prompt)

    def task(self, taken: Taken) -> TaskUnderTest:
        """As a task; a label becomes a reference in a form that the verifier is known to take."""
        return text_task(self.id, self.text, self.reference, self.labels, taken)


class Taken(NamedTuple):
    """The form in which a verifier takes what rows name as right; None where there is none that is known here."""

    form: str | None
    trouble: str = ""  # why it gave no reward at all, foreign text


def text_task(id: str, prompt: str, whole: str | None, labels: Sequence[str], taken: Taken) -> TaskUnderTest:
    """A task in words: its reference is whole, or a label in a form that is taken."""
    notes = []
    reference = whole
    if whole is None and labels and taken.form is not None:
        reference = taken.form.format(labels[0])
    elif whole is None and labels and taken.trouble:
        notes.append(f"the row names a right answer, for which the verifier gives no reward: no reference. {taken.trouble}")
    elif whole is None and labels:
        notes.append("the row names a right answer, and the verifier takes it in no form that is known here: no reference")
    answers = tuple(dict.fromkeys([*([reference] if reference is not None else []), *labels]))
    return TaskUnderTest(id, Kind.TEXT, prompt, None if reference is None else Text(reference), answers=answers, notes=tuple(notes))


def taken_form(labelled: Sequence[tuple[T, str]], grade: Callable[[T, str], Grade]) -> Taken:
    """The form in which a verifier pays what rows name as right. Raises Unreadable where it cannot be loaded."""
    troubles = []
    for form in FORMS if labelled else ():
        for each, label in labelled[:TRIED]:
            said = grade(each, form.format(label))
            if said.trouble is Trouble.NOT_BUILT:
                raise Unreadable(f"the verifier cannot be loaded: {said.evidence.strip()[-1000:]}")
            if (said.reward or 0.0) >= 1.0:
                return Taken(form)
            troubles.append(_trouble(said))
    return Taken(None, troubles[0] if all(troubles) and troubles else "")


def _trouble(said: Grade) -> str:
    """Why there is no reward, by the last line that the verifier wrote; empty where there is one."""
    lines = said.evidence.strip().splitlines() or [""]
    return f"{said.trouble}: {lines[-1][-300:]}" if said.trouble else ""


def read_questions(rows: Sequence[Row]) -> list[Question]:
    """Raises Unreadable where a row has no prompt."""
    ids = unique([_id(row, number) for number, row in enumerate(rows)])
    return [_question(row, id) for row, id in zip(rows, ids, strict=True)]


def _id(row: Row, number: int) -> str:
    value = row.value.get("task_id", row.value.get("id"))
    return str(value) if isinstance(value, str | int) and value != "" else str(number)


def _question(row: Row, id: str) -> Question:
    name = next((name for name in PROMPTS if name in row.value), None)
    prompt = row.value.get(name or "")
    messages = isinstance(prompt, list) and prompt and all(isinstance(each, dict) for each in prompt)
    if not isinstance(prompt, str) and not messages:
        raise Unreadable(f"{row.place}: {name or 'prompt'} is {prompt!r:.80}, neither a text nor messages")
    whole = next((text for field in WHOLE if (text := _text(row.value.get(field))) is not None), None)
    labels = tuple(dict.fromkeys(text for field in LABELS if (text := _text(row.value.get(field))) is not None))
    columns = {field: value for field, value in row.value.items() if field != name}
    return Question(id, prompt, columns, whole, labels)


def _text(value: object) -> str | None:
    """What a field says: a text, a number, the last of messages, the first of several answers."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, list) and value:
        return _content(value[-1]) if isinstance(value[-1], dict) else _text(value[0])
    return None


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else json.dumps(content)
