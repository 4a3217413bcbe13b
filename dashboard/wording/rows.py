"""A line of the list of what waits, in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from urllib.parse import urlencode

from dashboard.shapes import QueueRow
from dashboard.wording.values import Json, ago, amount, decided, environment, probability, size
from inspector.showable import showable


def row(line: Json, filters: Mapping[str, str], now: datetime | None = None) -> QueueRow:
    """A line of the list."""
    step = "" if line["step"] is None else f" · step {line['step']}"
    source = (line.get("why_check"), line.get("why_tier"), line.get("why_cause"))
    return QueueRow(
        key=line["key"],
        address=f"/episode?{urlencode({'key': line['key'], **filters})}",
        verdict=line["verdict"],
        probability=probability(line["probability"]),
        why=showable(line["why"]) if line.get("why") else "no finding of its own: decided with its group",
        source=" · ".join(showable(part) for part in source if part),
        place=f"{environment(line)} / {showable(line['task'])}",
        run=" · ".join([showable(line["run"]) + step if line["run"] else "no run", showable(line["id"])]),
        reward=amount(line["reward"]),
        scored=line["reward"] is not None,
        size=size(line["bytes"]),
        action=decided(line),
        received=ago(line["received_at"], now),
    )
