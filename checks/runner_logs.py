"""Reads what a test runner says of itself at the end of a log: pytest, unittest, jest, go test and cargo test.

The tests run the agent's code, so the log may hold anything that the agent chose to print. Only whole lines in a runner's
own form near the end count, and the last one goes before all others: runners write it after everything they run. What is
read here may convict a payment and never clears one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

TAIL_CHARS = 8192
TAIL_LINES = 40
LINE_CHARS = 300  # a runner's summary is shorter
_TO_RAN = 3  # lines between unittest's count and its result


class Summary(NamedTuple):
    """What a runner said last."""

    line: str
    passed: int
    failed: int
    errors: int = 0  # at collection, at set-up or when building


_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_COUNT = re.compile(r"(\d{1,9}) ([a-z]+)")
_PYTEST = re.compile(r"(?:=+ )?(no tests ran|\d{1,9} [a-z ]+(?:, \d{1,9} [a-z ]+)*) in \d+(?:\.\d+)?s(?: \([\d:]+\))?(?: =+)?")
_JEST = re.compile(r"Tests: +((?:\d{1,9} [a-z]+, )*\d{1,9} total)")
_UNITTEST = re.compile(r"(?:OK|FAILED|NO TESTS RAN)(?: \(([a-z ]+=\d{1,9}(?:, [a-z ]+=\d{1,9})*)\))?")
_RAN = re.compile(r"Ran (\d{1,9}) tests? in [\d.]+s")
_PAIR = re.compile(r"([a-z ]+)=(\d{1,9})")
_GO = re.compile(r"(ok|FAIL|\?) *\t\S+(?:\t| )(?:\(cached\)|[\d.]+s|\[[a-z ]+\])(.*)")
_FIRST = frozenset("=0123456789nTOFNo?t")  # what those lines begin with: most others need no pattern
_CARGO = re.compile(r"test result: (?:ok|FAILED)\. (\d{1,9}) passed; (\d{1,9}) failed;.*")


def last_summary(log: str | None) -> Summary | None:
    """The last summary near the end of a log; None where no runner that we know wrote one there."""
    if not log:
        return None
    tail = log[-TAIL_CHARS:]
    lines = [line.rstrip() for line in (_COLOUR.sub("", tail) if "\x1b" in tail else tail).splitlines()[-TAIL_LINES:]]
    for at in range(len(lines) - 1, -1, -1):
        if len(lines[at]) > LINE_CHARS or lines[at][:1] not in _FIRST:
            continue
        for read in _READERS:
            if summary := read(lines, at):
                return summary
    return None


def _pytest(lines: Sequence[str], at: int) -> Summary | None:
    return _worded(_PYTEST, lines[at])


def _jest(lines: Sequence[str], at: int) -> Summary | None:
    return _worded(_JEST, lines[at])


def _worded(form: re.Pattern[str], line: str) -> Summary | None:
    found = form.fullmatch(line)
    if not found:
        return None
    counts = {word: int(number) for number, word in _COUNT.findall(found[1])}
    passed = counts.get("passed", 0) + counts.get("xfailed", 0) + counts.get("xpassed", 0)
    return Summary(line, passed, counts.get("failed", 0), counts.get("error", 0) + counts.get("errors", 0))


def _unittest(lines: Sequence[str], at: int) -> Summary | None:
    found = _UNITTEST.fullmatch(lines[at])
    ran = next((count for line in lines[max(at - _TO_RAN, 0) : at] if (count := _RAN.fullmatch(line))), None)
    if not found or not ran:
        return None
    counts = {name.strip(): int(number) for name, number in _PAIR.findall(found[1] or "")}
    failed = counts.get("failures", 0) + counts.get("unexpected successes", 0)
    passed = max(int(ran[1]) - failed - counts.get("errors", 0) - counts.get("skipped", 0), 0)
    return Summary(f"{ran[0]}: {lines[at]}", passed, failed + counts.get("errors", 0))


def _go(lines: Sequence[str], at: int) -> Summary | None:
    """Go writes a line for each package, so all of them count."""
    if not _GO.fullmatch(lines[at]):
        return None
    packages = [found for line in lines if len(line) <= LINE_CHARS and (found := _GO.fullmatch(line))]
    failed = [found[0] for found in packages if found[1] == "FAIL"]
    unbuilt = [line for line in failed if line.endswith(" failed]")]
    passed = sum(found[1] == "ok" and "[no tests to run]" not in found[0] for found in packages)
    return Summary((failed or [lines[at]])[-1], passed, len(failed) - len(unbuilt), len(unbuilt))


def _cargo(lines: Sequence[str], at: int) -> Summary | None:
    """Cargo writes a line for each test binary, so all of them count."""
    if not _CARGO.fullmatch(lines[at]):
        return None
    binaries = [found for line in lines if len(line) <= LINE_CHARS and (found := _CARGO.fullmatch(line))]
    failed = [found[0] for found in binaries if int(found[2])]
    return Summary((failed or [lines[at]])[-1], sum(int(found[1]) for found in binaries), sum(int(found[2]) for found in binaries))


_READERS: tuple[Callable[[Sequence[str], int], Summary | None], ...] = (_pytest, _jest, _unittest, _go, _cargo)
