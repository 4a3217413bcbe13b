"""Reads and rewrites Python text that strangers wrote, without running it."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence

LONGEST, NODES, DEEPEST = 200_000, 10_000, 100  # of a text in characters, and of its tree
BITS = 10_000  # of a number; Python writes no longer ones in decimal


def parsed(text: str) -> ast.Module:
    """Its tree; a module without statements where it is no Python of this version, or more than can be copied, walked and shown."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text if len(text) <= LONGEST else "")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module(body=[], type_ignores=[])
    return tree if _bounded(tree) else ast.Module(body=[], type_ignores=[])


def _bounded(tree: ast.AST) -> bool:
    level, count = [tree], 0
    for _ in range(DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        count += len(level)
        if count > NODES or any(isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value.bit_length() > BITS for node in level):
            return False
    return not level


def unparsed(tree: ast.AST) -> str | None:
    """Its text; None where it is too deep."""
    try:
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    except (RecursionError, ValueError):
        return None


def literal(node: ast.AST) -> object:
    """The value of a literal. Raises ValueError where it is none."""
    try:
        return ast.literal_eval(node)
    except (TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError("no literal") from error


def calls_of(tests: Sequence[str], entry: str) -> Iterator[ast.Call]:
    """The calls of a function in tests; what HumanEval calls `candidate` is the function."""
    for node in (node for test in tests for node in ast.walk(parsed(test))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in (entry, "candidate"):
            yield node


def arguments_of(tests: Sequence[str], entry: str) -> list[tuple[object, ...]]:
    """The arguments of the calls whose arguments are all literal and without names."""
    found = []
    for call in calls_of(tests, entry):
        try:
            if call.args and not call.keywords:
                found.append(tuple(literal(argument) for argument in call.args))
        except ValueError:
            continue
    return found


def result_types(tests: Sequence[str], entry: str) -> list[str]:
    """The names of the types of literals that calls are compared with."""
    return sorted({type(value).__name__ for value in result_literals(tests, entry)})


def result_literals(tests: Sequence[str], entry: str) -> list[object]:
    """The literals that calls are compared with, each once."""
    found = {repr(value): value for test in tests for value in _compared(parsed(test), entry)}
    return list(found.values())


def _compared(tree: ast.Module, entry: str) -> Iterator[object]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(_is_call(part, entry) for part in ast.walk(node.left)):
            for comparator in node.comparators:
                try:
                    yield literal(comparator)
                except ValueError:
                    continue


def _is_call(node: ast.AST, entry: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in (entry, "candidate")
