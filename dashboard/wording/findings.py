"""Findings as the transcript lists and marks them."""

from __future__ import annotations

from collections.abc import Iterable

from dashboard.shapes import ShownFinding, ShownSpan
from dashboard.wording.values import Json
from inspector.showable import showable

QUOTE = 160


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
    return ShownSpan(span["step"], span["field"], start, end, label, showable(span.get("quote", ""), limit=QUOTE))
