"""Harmless changes of a right answer: what refuses them refuses right answers."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator

from inspector.environments.protocol import Kind, TaskUnderTest, Text
from inspector.probe.attempts import Attempt
from inspector.probe.python_texts import parsed, unparsed
from inspector.probe.words import Family, Outcome

REFLECTIVE = frozenset({"locals", "vars", "dir", "eval", "exec", "globals", "inspect", "_getframe", "getsource", "compile"})
BYTES = r"byte[- ](identical|exact)|byte[- ]for[- ]byte (identical|equal|the same|copy|copies)|exact(ly)? (the same )?bytes|\d+ bytes"
STRICT = {  # words of a task's text with which a change may be forbidden: then a refusal is told, and is no outcome
    "ends": re.compile(rf"new ?line|line ?break|{BYTES}|trailing|white ?space|verbatim|no extra|nothing else|without any|exactly as|as is", re.IGNORECASE),
    "order": re.compile(rf"\border|\bsort|canonical|{BYTES}|verbatim|minif|indent|exactly as|as is|alphabet", re.IGNORECASE),
    "source": re.compile(r"comment|source|line count|lines of code|one[- ]liner|characters|variable name", re.IGNORECASE),
}


def forbidden(prompt: str, rule: str) -> bool:
    """Whether a task's text may forbid this kind of change."""
    return bool(STRICT[rule].search(prompt))


def attempts(task: TaskUnderTest, reference: Text) -> Iterator[Attempt]:
    """Those that fit; each is paid where the verifier asks for no more than the task does."""
    if task.kind is Kind.CODE:
        yield from _of_code(task, reference.text)
    elif task.kind is Kind.TEXT:
        yield from _of_text(task, reference.text)


def as_text(text: str) -> Attempt:
    """A reference that the task keeps as something else than text, as one."""
    return variation("as_text", text, "as a text, the only form in which a policy answers", "text", noted=False)


def _of_code(task: TaskUnderTest, text: str) -> Iterator[Attempt]:
    noted = forbidden(task.prompt, "source")
    yield variation("comments", f"# a comment\n\n{text.rstrip()}\n\n# another one\n\n", "with comments and empty lines more", "source", noted)
    renamed = _renamed(text)
    if renamed is not None and renamed != text:
        yield variation("renamed", renamed, "with other names for local variables and other spacing", "source", noted)


def _of_text(task: TaskUnderTest, text: str) -> Iterator[Attempt]:
    """White space around an answer is taken off by nearly all that ask a verifier, so its refusal is told and is no outcome."""
    yield variation("line_end", f"{text}\n", "with an end of line", "ends", noted=True)
    yield variation("spaces", f" {text} ", "with a space before and after", "ends", noted=True)
    reordered = _reordered(text)
    if reordered is not None and reordered != text:
        yield variation("key_order", reordered, "with the keys of its JSON in another order", "order", forbidden(task.prompt, "order"))


def variation(name: str, text: str, how: str, root: str, noted: bool) -> Attempt:
    """One, of a text."""
    claim = f"The reference is refused {how}, which changes nothing of what it is."
    return Attempt(f"variation/{name}", Family.VARIATION, Text(text), Outcome.FALSE_REJECTING, claim, root=f"variation {root}", noted=noted)


def _reordered(text: str) -> str | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or len(value) < 2:
        return None
    return json.dumps(dict(reversed(value.items())), ensure_ascii=False)


def _renamed(text: str) -> str | None:
    """The same program with its functions' local variables renamed; None where that could change what it does."""
    tree = parsed(text)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    if not tree.body or names & REFLECTIVE:
        return None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            _rename(node, names)
    return unparsed(tree)


def _rename(function: ast.FunctionDef, taken: set[str]) -> None:
    inside = list(ast.walk(function))
    if any(isinstance(node, ast.ClassDef | ast.Global | ast.Nonlocal | ast.Match) for node in inside):
        return
    bound = set(_stored(function)) - {argument.arg for node in inside if isinstance(node, ast.arguments) for argument in _all(node)}
    bound -= {node.name for node in inside if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    bound -= {name for node in inside if isinstance(node, ast.Import | ast.ImportFrom) for name in _imported(node)}
    bound -= {node.name for node in inside if isinstance(node, ast.ExceptHandler) and node.name}
    for node in inside:
        if isinstance(node, ast.Name) and node.id in bound and f"{node.id}_v" not in taken:
            node.id = f"{node.id}_v"


def _stored(node: ast.AST) -> Iterator[str]:
    """The names that a function binds itself, not in a comprehension or a function within."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield child.id
        yield from _stored(child)


def _all(arguments: ast.arguments) -> list[ast.arg]:
    more = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *more]


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [(alias.asname or alias.name).split(".")[0] for alias in node.names]
