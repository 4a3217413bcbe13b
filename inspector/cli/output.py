"""What the commands print: JSON lines for programs, tables for people, progress for whoever waits at a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from inspector.showable import showable

WIDE = 220  # columns where nobody looks at a terminal
Step = Callable[[str, int, int | None], object]


def json_line(value: Any) -> None:
    """One value as one line of ASCII: equal for every parser, and nothing in it that a terminal obeys."""
    text = msgspec.json.encode(value).decode()
    if not text.isascii():
        text = json.dumps(msgspec.json.decode(text), separators=(",", ":"))
    sys.stdout.write(text.replace("\x7f", "\\u007f") + "\n")


def say(text: str) -> None:
    """A line for people, on standard output."""
    sys.stdout.write(showable(text) + "\n")


def warn(text: str) -> None:
    """A line for people, beside the output."""
    sys.stderr.write(f"inspector: {showable(text)}\n")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
    """Rows of foreign text: nothing of it is markup, and nothing is cut. A line feed starts a line within its cell."""
    shown = Table(*columns, title=Text(title) if title else None, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for column in shown.columns:
        column.overflow = "fold"
    for row in rows:
        shown.add_row(*[_cell(value) for value in row])
    _console().print(shown)


def _cell(value: object) -> Text:
    text = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    return Text(showable(text, lines=True).replace("\t", "\\t"))


def _console() -> Console:
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else WIDE)


@contextmanager
def progress() -> Iterator[Step]:
    """A bar on standard error while something long goes on, where that is a terminal."""
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,  # or the output would go where the bar is
        disable=not sys.stderr.isatty(),
    )
    with bar:
        tasks: dict[str, Any] = {}

        def step(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)

        yield step
