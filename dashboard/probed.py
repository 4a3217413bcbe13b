"""What the service knows of environment versions from their probes, gathered over its pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, NamedTuple

from dashboard.holding import held
from inspector.client.http import Api, ApiError

Json = Mapping[str, Any]
AT_ONCE = 200
MOST_TASKS = 4_000  # of a version
MOST_VERSIONS = 1_000
MOST_PROBES = 200  # the newest


class Scored(NamedTuple):
    """A scorecard with the lines of its tasks, worst first; `whole` where these are all."""

    card: Json
    lines: list[Json]
    whole: bool


def scored(opened: Api, environment: str, version: str) -> Scored:
    """The scorecard of a version with all its tasks, of the worst `MOST_TASKS`. Raises ApiError."""
    return _scored(opened, environment, version, lambda _: False)


def scored_until(opened: Api, environment: str, version: str, task: str | None, more: int) -> Scored:
    """The same, read as far as `task` and `more` lines behind it, from the worst on. Raises ApiError."""

    def enough(lines: list[Json]) -> bool:
        at = 0 if task is None else next((at for at, line in enumerate(lines) if line["task"] == task), len(lines))
        return at + more < len(lines)

    return _scored(opened, environment, version, enough)


def _scored(opened: Api, environment: str, version: str, enough: Callable[[list[Json]], bool]) -> Scored:
    pages: list[Json] = held(f"scored {environment}@{version}", lambda: [opened.scorecard(environment, version, limit=AT_ONCE)])
    lines = [line for page in pages for line in page["tasks"]]
    while pages[-1]["next"] is not None and len(lines) < MOST_TASKS and not enough(lines):
        pages.append(opened.scorecard(environment, version, after=pages[-1]["next"], limit=AT_ONCE))
        lines += pages[-1]["tasks"]
    return Scored(pages[0], lines, pages[-1]["next"] is None)


def newest(opened: Api) -> dict[tuple[str, str], Json]:
    """By environment and version: the newest probe, of the newest `MOST_PROBES` that this project asked for. Raises ApiError."""
    found: dict[tuple[str, str], Json] = held("newest", lambda: _newest(opened))
    return found


def _newest(opened: Api) -> dict[tuple[str, str], Json]:
    by_version: dict[tuple[str, str], Json] = {}
    for probe in opened.probes(most=MOST_PROBES):
        by_version.setdefault((probe["environment"], probe["version"]), probe)
    return by_version


def newest_of(opened: Api, environment: str, version: str) -> Json | None:
    """The newest probe of a version that this project asked for, as it stands. Raises ApiError."""
    found: Json | None = held(f"newest {environment}@{version}", lambda: _newest_of(opened, environment, version))
    return found


def _newest_of(opened: Api, environment: str, version: str) -> Json | None:
    last = next(opened.probes(environment=environment, version=version, most=1), None)
    found: Json | None = None if last is None else opened.probe(last["id"])
    return found


def versions(opened: Api, environment: str) -> list[str]:
    """The versions of an environment that the project sees, newest first, of the first `MOST_VERSIONS` of all. Raises ApiError."""
    found: list[Json] = held("versions", lambda: list(islice(opened.environments(), MOST_VERSIONS)))
    return [one["version"] for one in reversed(found) if one["environment"] == environment]


def report(opened: Api, key: str, task: str) -> Json | None:
    """What the probe `key` says of a task; None where it says nothing yet. Raises ApiError."""
    found: Json | None = held(f"report {key} {task}", lambda: opened.probed_task(key, task)["report"])
    return found


def state(opened: Api, environment: str, version: str, task: str | None = None) -> Json | None:
    """How a version or a task stands; None where this project may not see the task."""
    found: Json | None = held(f"state {environment}@{version} {task or ''}", lambda: _state(opened, environment, version, task))
    return found


def _state(opened: Api, environment: str, version: str, task: str | None) -> Json | None:
    try:
        told: Json = opened.declaration(environment, version, task=task)
    except ApiError as error:
        if error.status == 404 and task is not None:
            return None
        raise
    return told
