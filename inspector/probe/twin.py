"""The task with its verifier's expected values changed: what was right is wrong there, so that nothing may be paid."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from inspector.environments.protocol import TaskUnderTest
from inspector.probe.python_texts import literal, parsed, unparsed


def contradicted(task: TaskUnderTest) -> TaskUnderTest | None:
    """With every literal that a comparison expects changed; None where there is none to change."""
    changed = [_changed(test) for test in task.tests]
    if not any(changed):
        return None
    return replace(task, tests=tuple(new or old for new, old in zip(changed, task.tests, strict=True)))


def one_by_one(task: TaskUnderTest) -> Sequence[TaskUnderTest]:
    """As `contradicted`, one test at a time."""
    twins = []
    for index, test in enumerate(task.tests):
        if (new := _changed(test)) is not None:
            twins.append(replace(task, tests=(*task.tests[:index], new, *task.tests[index + 1 :])))
    return twins


def _changed(test: str) -> str | None:
    tree = parsed(test)
    found = 0
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Compare)
            and len(node.ops) == 1
            and isinstance(node.ops[0], ast.Eq)
            and any(isinstance(each, ast.Call) for each in ast.walk(node.left))
        ):
            other = _other(node.comparators[0])
            if other is not None:
                node.comparators[0] = other
                found += 1
    return unparsed(tree) if found else None


def _other(node: ast.expr) -> ast.expr | None:
    """Another literal of the same type."""
    try:
        value = literal(node)
    except ValueError:
        return None
    if isinstance(value, bool):
        return ast.Constant(not value)
    if isinstance(value, int | float):
        return ast.Constant(value * 2 + 17)
    if isinstance(value, str):
        return ast.Constant(f"{value}~")
    if isinstance(value, list | tuple):
        return ast.parse(repr(type(value)([*value, "~"])), mode="eval").body
    return None
