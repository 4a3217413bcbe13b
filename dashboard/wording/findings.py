"""Findings as the transcript lists and marks them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dashboard.shapes import ShownFinding, ShownSpan
from dashboard.wording.values import Json
from inspector.showable import showable

BLANK = " \t\n"  # any other space may be what was hidden
QUOTE_LINES = 3
QUOTE = 330  # characters: about as many lines where the text has no line feeds
_CUT = re.compile(r"… \[(\d+) characters left out\]\Z")  # what an earlier cut says


def shown(found: Iterable[Json]) -> list[ShownFinding]:
    """As the transcript lists and marks them."""
    return [
        ShownFinding(
            message=showable(finding["message"]),
            tier=finding.get("tier", "evidence"),
            cause=str(finding.get("cause", "anomaly")),
            check=f"{showable(finding.get('check', ''))}@{finding.get('version', 0)}",
            score=f"score {finding.get('score', 1.0):.2f}" + (f", p = {finding['p_value']:.3g}" if finding.get("p_value") is not None else ""),
            spans=[_span(span) for span in finding.get("spans", ())],
        )
        for finding in found
    ]


def _span(span: Json) -> ShownSpan:
    start, end = span.get("start", 0), span.get("end", 0)
    label = showable(span["field"]) + (f" [{start}:{end}]" if end > start else "")
    return ShownSpan(span["step"], span["field"], start, end, label, quoted(span.get("quote", "")))


def quoted(text: str) -> str:
    """The first lines of a passage that hold anything, and how much of it is left."""
    cut = _CUT.search(text)
    whole = (text[: cut.start()] if cut else text).rstrip(BLANK)
    head = whole[: _end(whole)].rstrip(BLANK)
    left = len(whole) - len(head) + (int(cut[1]) if cut else 0)
    lines = [line for line in showable(head, lines=True).split("\n") if line.strip(BLANK)]
    return "\n".join(lines) + (f" … [{left:,} characters left out]" if left else "")


def _end(text: str) -> int:
    """As far as `QUOTE_LINES` lines with text go, and `QUOTE` characters at most."""
    at, lines = 0, 0
    for line in text.split("\n"):
        lines += bool(line.strip(BLANK))
        if lines > QUOTE_LINES:
            break
        at += len(line) + 1
    return min(at, QUOTE)
