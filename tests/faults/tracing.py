"""Reads what strace saw of the API: for each id when its bytes were flushed, its rows committed, and its answer sent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

CALLS = "fdatasync,fsync,sendto,sendmsg,write,writev,pwrite64,recvfrom"
OPTIONS = ("-f", "-ttt", "-y", "-qq", "--seccomp-bpf", "-e", f"trace={CALLS}", "-e", "signal=none", "-s", "6000")
_LINE = re.compile(r"(\d+) +[\d.]+ (.*)")
_CALL = re.compile(r"(\w+)\((\d+<[^>]*>|\d+)(.*)", re.DOTALL)
_RESUMED = re.compile(r"<\.\.\. \w+ resumed>(.*)")
_POSTED = re.compile(r"strace-\d+-\d+")


class Call(NamedTuple):
    """One system call. Lines of the trace are in the order in which entries and returns happened."""

    thread: int
    name: str
    file: str  # number<what it is>
    text: str
    entered: int  # line of the trace
    returned: int


class Road(NamedTuple):
    """What happened to the bytes and the rows of one id."""

    written: Call | None  # the last write to a segment before the flush
    flushed: Call | None
    committed: Call
    confirmed: Call | None  # the database's answer to the commit


def calls(trace: Path) -> Iterator[Call]:
    """Every call that returned, in the order of the returns."""
    begun: dict[int, tuple[int, str]] = {}
    with trace.open(errors="replace") as lines:
        for at, line in enumerate(lines):
            found = _LINE.match(line)
            if found is None:
                continue
            thread, text = int(found[1]), found[2].rstrip("\n")
            if text.endswith("<unfinished ...>"):
                begun[thread] = (at, text.removesuffix("<unfinished ...>"))
                continue
            entered = at
            if resumed := _RESUMED.match(text):
                entered, head = begun.pop(thread, (at, ""))
                text = head + resumed[1]
            if call := _CALL.match(text):
                yield Call(thread, call[1], call[2], call[3], entered, at)


def roads(seen: Iterable[Call]) -> dict[str, Road]:
    """By id; the last one that was committed."""
    found: dict[str, Road] = {}
    by_thread: dict[int, _Thread] = {}
    for call in seen:
        found |= by_thread.setdefault(call.thread, _Thread()).take(call)
    return found


class _Thread:
    """Intake does all of one posting in one thread."""

    def __init__(self) -> None:
        self.written: Call | None = None
        self.flushed: Call | None = None
        self.committed: Call | None = None
        self.connection = ""
        self.ids: list[str] = []

    def take(self, call: Call) -> dict[str, Road]:
        if ".seg>" in call.file:
            if call.name == "fdatasync":
                self.flushed = call if call.text.endswith("= 0") else None
            else:
                self.written, self.flushed = call, None
        elif call.name == "sendto" and "PGCOPY" in call.text and (ids := _POSTED.findall(call.text)):
            self.connection, self.ids = call.file, ids
        elif self.ids and call.file == self.connection and "COMMIT" in call.text:
            if call.name == "sendto":
                self.committed = call
            elif call.name == "recvfrom" and self.committed:
                return self._end(call)
        return {}

    def _end(self, confirmed: Call) -> dict[str, Road]:
        assert self.committed
        ended = {id_: Road(self.written, self.flushed, self.committed, confirmed) for id_ in self.ids}
        self.written = self.flushed = self.committed = None
        self.ids = []
        return ended


def answers(seen: Iterable[Call]) -> dict[str, Call]:
    """By id: the first call that sent the status line of its answer."""
    found: dict[str, Call] = {}
    status: dict[str, Call] = {}
    for call in seen:
        if call.name not in ("write", "writev", "sendto", "sendmsg") or "<socket:" not in call.file:
            continue
        if "HTTP/1.1 2" in call.text:
            status[call.file] = call
        if call.file in status and '\\"status\\":' in call.text:
            for id_ in _POSTED.findall(call.text):
                found.setdefault(id_, status[call.file])
    return found


def disorder(trace: Path, acknowledged: Iterable[str]) -> list[str]:
    """Ids whose commit was sent before their flush had returned, or whose status line before the commit was confirmed."""
    seen = list(calls(trace))
    taken, sent = roads(seen), answers(seen)
    return [f"{id_}: {fault}" for id_ in acknowledged if (fault := _fault(taken.get(id_), sent.get(id_)))]


def _fault(road: Road | None, answer: Call | None) -> str:
    if road is None or answer is None or road.confirmed is None:
        return "its commit or its answer was not seen"
    if road.written is None or road.flushed is None:
        return "it was committed without a flush of its segment"
    if not road.written.returned < road.flushed.entered <= road.flushed.returned < road.committed.entered:
        return "it was committed before its flush returned"
    return "" if road.confirmed.returned < answer.entered else "it was answered before its commit was confirmed"
