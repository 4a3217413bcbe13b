"""Runs a reference and its mutants on the same inputs and says where they differ; a text that is run inside a box, before the tests."""

import contextlib
import copy
import io
import json
import math
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

PLAIN = (int, float, complex, str, bytes, bool, type(None))
FIRST = dict(globals())
CALL_S = 0.05  # of processor time
ALIKE = 12  # inputs without a difference, after which a mutant is given up


class _Late(BaseException):
    pass


def _late(*_: object) -> None:
    raise _Late


def _plain(value: Any, depth: int = 0) -> bool:
    if depth > 6:
        return False
    if isinstance(value, dict):
        return all(_plain(key, depth + 1) and _plain(each, depth + 1) for key, each in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return len(value) < 10000 and all(_plain(each, depth + 1) for each in value)
    return type(value) in PLAIN


def _same(one: Any, other: Any) -> bool:
    if {repr(one), repr(other)} == {"None", "False"}:
        return True  # who asks for yes or no takes both for no
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other or repr(one) == repr(other) or math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other) or repr(one) == repr(other)


def _quiet() -> contextlib.ExitStack:
    stack = contextlib.ExitStack()
    stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
    stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
    return stack


def _loaded(text: str, entry: str) -> Callable[..., Any]:
    names = dict(FIRST)
    with _quiet():
        exec(compile(text, "program.py", "exec", dont_inherit=True), names)  # noqa: S102 -- only ever in a box
    return names[entry]  # type: ignore[no-any-return]


def _answer(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, str | None]:
    """(value, None) or (None, why there is none)."""
    signal.setitimer(signal.ITIMER_VIRTUAL, CALL_S)
    try:
        with _quiet():
            value = function(*copy.deepcopy(arguments))
        return (value, None) if _plain(value) else (None, "no plain value")
    except _Late:
        return None, "no end"
    except Exception as error:  # of a program under test
        return None, type(error).__name__
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _known(reference: Callable[..., Any], inputs: list[tuple[Any, ...]]) -> list[tuple[tuple[Any, ...], Any]]:
    """The inputs that the reference answers, twice in the same way."""
    known = []
    for arguments in inputs:
        (first, wrong), (second, again) = _answer(reference, arguments), _answer(reference, arguments)
        if wrong is None and again is None and first is not None and _same(first, second):
            known.append((arguments, first))
    return known


def _compared(function: Callable[..., Any], known: list[tuple[tuple[Any, ...], Any]]) -> tuple[int, int, str]:
    """Inputs asked, inputs answered otherwise, and the first of these."""
    different, example = 0, ""
    for asked, (arguments, right) in enumerate(known, 1):
        value, wrong = _answer(function, arguments)
        if wrong is not None or not _same(value, right):
            different += 1
            example = example or f"{arguments!r:.80}: {right!r:.60} is right, not {wrong or repr(value):.60}"
        if different == 0 and asked >= ALIKE:
            return asked, 0, ""
    return len(known), different, example


def differ(entry: str, reference: str, mutants: list[str], inputs: list[tuple[Any, ...]], mark: str) -> None:
    """Say one line for each mutant, and end."""
    signal.signal(signal.SIGVTALRM, _late)
    known = _known(_loaded(reference, entry), inputs)
    for index, text in enumerate(mutants if known else []):
        try:
            function = _loaded(text, entry)
        except Exception:  # noqa: S112 -- a mutant that is no program tells nothing
            continue
        os.write(2, (mark + json.dumps([index, *_compared(function, known)]) + "\n").encode())
    sys.stderr.flush()
    os._exit(0)
