"""What the service knows of environment versions from their probes, gathered over its pages."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

from dashboard.holding import held
from inspector.client.http import Api, ApiError

Json = Mapping[str, Any]
AT_ONCE = 200
MOST_TASKS = 4_000  # of a version, looked at to find the worst
MOST_VERSIONS = 1_000
MOST_PROBES = 200  # the newest
REPORTS_AT_ONCE = 20  # they may be long


class Scored(NamedTuple):
    """A scorecard with the lines of its tasks; `whole` where these are all."""

    card: Json
    lines: list[Json]
    whole: bool


def card(opened: Api, environment: str, version: str) -> Json:
    """The counts of a version, and the first of its tasks. Raises ApiError."""
    found: Json = held(f"card {environment}@{version}", lambda: opened.scorecard(environment, version, limit=1))
    return found


def scored(opened: Api, environment: str, version: str) -> Scored:
    """The scorecard of a version with its tasks, as they come. Raises ApiError."""
    found: Scored = held(f"scored {environment}@{version}", lambda: _scored(opened, environment, version))
    return found


def _scored(opened: Api, environment: str, version: str) -> Scored:
    first = page = opened.scorecard(environment, version, limit=AT_ONCE)
    lines = list(page["tasks"])
    while page["next"] is not None and len(lines) < MOST_TASKS:
        page = opened.scorecard(environment, version, after=page["next"], limit=AT_ONCE)
        lines += page["tasks"]
    return Scored(first, lines, page["next"] is None)


def newest(opened: Api) -> dict[tuple[str, str], Json]:
    """By environment and version: the newest probe, of the newest `MOST_PROBES` that this project asked for. Raises ApiError."""
    found: dict[tuple[str, str], Json] = held("newest", lambda: _newest(opened))
    return found


def _newest(opened: Api) -> dict[tuple[str, str], Json]:
    by_version: dict[tuple[str, str], Json] = {}
    for probe in opened.probes(most=MOST_PROBES):
        by_version.setdefault((probe["environment"], probe["version"]), probe)
    return by_version


def probe(opened: Api, key: str) -> Json:
    """A probe as it stands. Raises ApiError."""
    found: Json = held(f"probe {key}", lambda: opened.probe(key))
    return found


def versions(opened: Api, environment: str) -> list[str]:
    """The versions of an environment that the project sees, newest first, of the first `MOST_VERSIONS` of all. Raises ApiError."""
    found: list[Json] = held("versions", lambda: list(islice(opened.environments(), MOST_VERSIONS)))
    return [one["version"] for one in reversed(found) if one["environment"] == environment]


def report(opened: Api, key: str, task: str) -> Json | None:
    """What the probe `key` says of a task; None where it says nothing. Raises ApiError."""
    found: Json | None = held(f"report {key} {task}", lambda: _report(opened, key, task))
    return found


def _report(opened: Api, key: str, task: str) -> Json | None:
    after: str | None = None
    while True:
        page = opened.probed_tasks(key, after=after, limit=REPORTS_AT_ONCE)
        for one in page["tasks"]:
            if one["task"] == task:
                said: Json | None = one["report"]
                return said
        after = page["next"]
        if after is None:
            return None


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
