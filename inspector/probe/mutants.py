"""Writes programs that differ from a reference in one place, and the program that tells on which inputs they behave otherwise."""

from __future__ import annotations

import ast
import copy
import json
import random
from collections.abc import Callable, Sequence
from importlib.resources import files
from itertools import chain
from typing import Any, NamedTuple

from inspector.environments.protocol import TaskUnderTest
from inspector.probe.inputs import near
from inspector.probe.python_texts import arguments_of, parsed, result_literals, unparsed

CANDIDATES = 16
TRIED = 3 * CANDIDATES  # places, of which some give the same program
INPUTS = 24
SHARE = 0.25  # of the inputs on which a mutant must give another answer: a rare difference may lie outside of what the task is about
LEAST = 4  # such inputs
MARK = "differs:"

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


class Mutant(NamedTuple):
    """A program and what was changed."""

    text: str
    what: str


class Different(NamedTuple):
    """A mutant that provably behaves otherwise."""

    mutant: Mutant
    inputs: int  # on which both were run
    different: int
    example: str


def mutants(reference: str, entry: str, tests: Sequence[str], seed: int) -> list[Mutant]:
    """Up to CANDIDATES of them, drawn from all kinds and places; constant answers first."""
    tree = parsed(reference)
    places = [index for index, node in enumerate(ast.walk(tree)) if _mutation(node) is not None]
    random.Random(seed).shuffle(places)  # noqa: S311 -- no secret
    constants = (_constant(tree, entry, value) for value in result_literals(tests, entry)[:3])
    chosen: dict[str, Mutant] = {}
    for each in chain(constants, (_changed(tree, place) for place in places[:TRIED])):
        if each is not None and each.text != reference:
            chosen[each.text] = each
        if len(chosen) == CANDIDATES:
            break
    return list(chosen.values())


def _constant(tree: ast.Module, entry: str, value: object) -> Mutant | None:
    changed = copy.deepcopy(tree)
    for node in changed.body:
        if isinstance(node, ast.FunctionDef) and node.name == entry:
            node.body = [ast.Return(ast.parse(repr(value), mode="eval").body)]
            text = unparsed(changed)
            return None if text is None else Mutant(text, f"the answer is always {value!r:.60}")
    return None


def _changed(tree: ast.Module, place: int) -> Mutant | None:
    """The mutant of one place."""
    changed = copy.deepcopy(tree)
    node = next(node for number, node in enumerate(ast.walk(changed)) if number == place)
    before = unparsed(node) or ""
    mutate = _mutation(node)
    if mutate is None:
        return None
    mutate(node)
    text = unparsed(changed)
    return None if text is None else Mutant(text, f"line {getattr(node, 'lineno', '?')}: {before.strip()[:80]} became {(unparsed(node) or '').strip()[:80]}")


def _mutation(node: ast.AST) -> Callable[[Any], None] | None:
    """What would change a node, None where nothing does."""
    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in SWAPS:
        return _swap_operator
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        return _swap_comparison
    if isinstance(node, ast.Return) and node.value is not None:
        return _return_nothing
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return _next_number
    return _negate if isinstance(node, ast.If | ast.IfExp) else None


def _swap_operator(node: ast.BinOp | ast.AugAssign | ast.BoolOp) -> None:
    node.op = SWAPS[type(node.op)]()  # type: ignore[assignment]  # each swap stays within its kind


def _swap_comparison(node: ast.Compare) -> None:
    node.ops[0] = SWAPS[type(node.ops[0])]()  # type: ignore[call-overload]


def _return_nothing(node: ast.Return) -> None:
    node.value = ast.Constant(None)


def _next_number(node: ast.Constant) -> None:
    node.value = node.value + 1  # type: ignore[operator]  # only ever of a number


def _negate(node: ast.If | ast.IfExp) -> None:
    node.test = ast.UnaryOp(ast.Not(), node.test)


def differential(task: TaskUnderTest, reference: str, chosen: Sequence[Mutant], seed: int, mark: str) -> str | None:
    """A program that runs reference and mutants on inputs near those of the tests, says where they differ, and ends; None without such inputs."""
    if task.entry_point is None:
        return None
    inputs = near(arguments_of(task.tests, task.entry_point), INPUTS, seed)
    if len(inputs) < LEAST or not chosen:
        return None
    runner = (files("inspector.probe") / "boxed" / "differential.py").read_text()
    return f"{runner}\n\ndiffer({task.entry_point!r}, {reference!r}, {[each.text for each in chosen]!r}, {inputs!r}, {mark!r})\n"


def read_differences(said: str, chosen: Sequence[Mutant], mark: str) -> list[Different]:
    """What that program said, the clearest first."""
    lines = [line.partition(mark)[2] for line in said.splitlines() if mark in line]
    found = []
    for line in lines:
        try:
            index, inputs, different, example = json.loads(line)
            found.append(Different(chosen[index], int(inputs), int(different), str(example)))
        except (ValueError, TypeError, IndexError, OverflowError, RecursionError):
            continue
    clear = [each for each in found if each.inputs > 0 and each.different >= max(LEAST, SHARE * each.inputs)]
    return sorted(clear, key=lambda each: -each.different / each.inputs)
