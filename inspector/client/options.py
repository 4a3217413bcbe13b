"""The choices of a trainer, checked once, where a mistake may still raise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from inspector.client.advice import FailMode
from inspector.client.folders import scope_of
from inspector.client.lines import Redact
from inspector.errors import InspectorError
from inspector.trajectory import RunRef
from inspector.verdict import Decision, Mode


class BadOption(InspectorError, ValueError):
    """An argument of a client that cannot be used; raised when it is made, never later."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Everything that a client is made from; what is pickled of it."""

    url: str
    key: str = field(repr=False)
    run: RunRef | None
    spool_dir: Path | None
    deadline_s: float
    fail_mode: FailMode
    strict: bool
    redact: Redact | None
    on_decision: Callable[[Decision], object] | None
    mode: Mode | None
    max_queue_bytes: int
    max_spool_bytes: int
    max_dead_bytes: int
    batch_lines: int
    batch_bytes: int
    batch_ms: float
    post_timeout_s: float
    poll_wait_s: float
    follow: bool
    former_keys: tuple[str, ...] = field(repr=False)

    def __post_init__(self) -> None:
        _check_url(self.url)
        if not self.key or not self.key.isascii() or not self.key.isprintable():
            raise BadOption("key: empty, or with characters that no key has")
        for name in ("deadline_s", "max_queue_bytes", "max_spool_bytes", "batch_lines", "batch_bytes", "post_timeout_s"):
            if not getattr(self, name) > 0:
                raise BadOption(f"{name}={getattr(self, name)!r} must be above 0")

    @property
    def run_id(self) -> str | None:
        return self.run.id if self.run else None

    @property
    def scope(self) -> str:
        """Names what belongs to this service and key in a shared spool folder."""
        return scope_of(self.url, self.key)

    @property
    def former_scopes(self) -> list[str]:
        """Of keys of the same project that were replaced: what was spooled under them is still sent."""
        return [scope_of(self.url, key) for key in self.former_keys]

    @property
    def view_file(self) -> Path | None:
        return self.spool_dir / f"view-{self.scope}.json" if self.spool_dir else None


def _check_url(url: str) -> None:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise BadOption(f"url={url!r}: {error}") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise BadOption(f"url={url!r} must begin with http:// or https:// and name a host")


def run_ref(run: RunRef | str | None) -> RunRef | None:
    """A run by its id, or in full."""
    return RunRef(id=run) if isinstance(run, str) else run


def fail_mode(word: str) -> FailMode:
    """`open` or `closed`; raises BadOption."""
    if word not in FailMode._value2member_map_:
        raise BadOption(f"fail_mode={word!r} must be 'open' or 'closed'")
    return FailMode(word)


def ceiling(word: str | None) -> Mode | None:
    """A client may lower its run to observe; raises BadOption for anything else."""
    if word not in (None, Mode.OBSERVE):
        raise BadOption(f"mode={word!r}: a client may only lower a run to 'observe'; whoever owns the project raises it")
    return Mode.OBSERVE if word else None
