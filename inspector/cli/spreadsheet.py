"""Writes lists as CSV that a spreadsheet shows and never runs."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Mapping, Sequence

from inspector.showable import csv_cell


def csv_lines(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """A header and a line a row, on standard output; what is None is empty."""
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(columns)
    for row in rows:
        out.writerow([_cell(row.get(column)) for column in columns])


def _cell(value: object) -> str:
    """Numbers as they are: only text can be mistaken for a formula."""
    if value is None:
        return ""
    return csv_cell(value) if isinstance(value, str) else str(value)
