"""Applies all rules to a task folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from inspector.environments.lint import image_rules, instruction_rules, python_rules, script_rules, structure_rules
from inspector.environments.lint.hints import Hint, Rule, Subject
from inspector.environments.trees import read_tree

RULES: Sequence[Rule] = (*structure_rules.RULES, *instruction_rules.RULES, *image_rules.RULES, *script_rules.RULES, *python_rules.RULES)
HINTS_PER_RULE = 20  # a folder of one mistake repeated tells nothing more after that


def lint(folder: Path, rules: Sequence[Rule] = RULES) -> Sequence[Hint]:
    """All hints of a task folder, by file and line. Raises Unreadable where it cannot be listed."""
    subject = Subject(read_tree(folder))
    return sorted((hint for rule in rules for hint in _of(rule, subject)), key=lambda hint: (hint.path, hint.line, hint.rule))


def _of(rule: Rule, subject: Subject) -> Iterator[Hint]:
    for number, found in enumerate(rule.find(subject)):
        if number == HINTS_PER_RULE:
            return
        yield Hint(rule.name, found.path, found.line, found.message, rule.proved_by)
