"""Values in words: rewards, times, sizes, names; every foreign text comes out showable."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from inspector.showable import showable

Json = Mapping[str, Any]


def amount(value: float | None) -> str:
    """A reward; None was not scored, which is not a score of 0."""
    return "not scored" if value is None else f"{value:g}"


def probability(value: float | None) -> str:
    """As a share of one."""
    return "" if value is None else f"p {value:.2f}"


def ago(then: str | datetime, now: datetime | None = None) -> str:
    """How long ago, in the largest unit that fits."""
    at = datetime.fromisoformat(then) if isinstance(then, str) else then
    seconds = max(0, int(((now or datetime.now(UTC)) - at).total_seconds()))
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return "just now"


def moment(then: str) -> str:
    """A time in UTC, to the second."""
    return f"{datetime.fromisoformat(then).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def size(count: int) -> str:
    """Bytes in a readable unit."""
    for unit, unit_bytes in (("MB", 1_000_000), ("kB", 1_000)):
        if count >= unit_bytes:
            return f"{count / unit_bytes:.1f} {unit}"
    return f"{count} B"


def counted(counts: Json) -> str:
    """How many wait in all and how many people judged today; a count that ended early says so."""
    waiting, most = counts["waiting"], counts["most"]
    by = ", ".join(f"{_number(number, number >= most)} {verdict}" for verdict, number in waiting.items() if number)
    total = f"{_number(sum(waiting.values()), any(n >= most for n in waiting.values()))} waiting ({by})" if by else "nothing waits"
    return f"{total} · {_number(counts['reviewed_today'], counts['reviewed_today'] >= most)} reviewed today"


def counted_as(counts: Json) -> str:
    """What the numbers of `counted` count."""
    return (
        f"Counted anew each time this page is drawn, for the whole project and without the filters. Waiting: trajectories that the checks flagged or"
        f" quarantined and no person has judged. Reviewed today: trajectories that anyone of the project judged since"
        f" {moment(counts['today'])}, each once. Counting ends at {counts['most']:,}, which a + shows."
    )


def _number(count: int, ended_early: bool) -> str:
    return f"{count:,}{'+' if ended_early else ''}"


def environment(line: Json) -> str:
    """team/name@version."""
    return f"{showable(line['environment'])}@{showable(line['version'])}"


def decided(line: Json) -> str:
    """The action, with the reward that an override gives, and whether it may still change."""
    if line["action"] is None:
        return "pending"
    action = str(line["action"]).replace("_", " ")
    if line["action"] == "override_reward" and line["reward_override"] is not None:
        action += f" to {line['reward_override']:g}"
    return action if line["final"] else f"{action} (provisional)"


def overlaid(whole: Json, own: Json) -> dict[str, Any]:
    """What is declared of the reward: a task's own values over those of its environment version."""
    return {**whole, **{name: value for name, value in own.items() if value is not None}}


def reward_range(reward: Json | None) -> str:
    """What an override may give, as it is declared."""
    if reward is None:
        return "the declared range is checked when it is set"
    low, high, penalty = reward.get("min"), reward.get("max"), reward.get("penalty_min")
    if low is None and high is None and penalty is None:
        return "no range is declared"
    text = f"declared {'…' if low is None else f'{low:g}'} to {'…' if high is None else f'{high:g}'}"
    return text if penalty is None else f"{text}, down to {penalty:g} as a penalty"


def standing(told: Json) -> str:
    """The state of an environment version or task."""
    weight = told.get("sampling_weight")
    return str(told["state"]) + (f" at sampling weight {weight:g}" if weight is not None else "")


def shown(text: str) -> str:
    """A foreign name or text on one line."""
    return showable(text)


def failure(reason: str, path: str | None) -> str:
    """What the service refused, and at which field."""
    return showable(f"{path}: {reason}" if path else reason, limit=1_000)


def part(name: str) -> str:
    """A foreign name as one segment of a path."""
    return quote(name, safe="").replace(".", "%2E") if name in (".", "..") else quote(name, safe="")
