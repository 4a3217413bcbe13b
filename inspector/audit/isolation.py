"""Runs the checks of one trajectory in a child of its own, with time limits that also hold in C code.

What comes here has ended two workers. The child may die of it or never return; the parent learns which check was
running, and lives on. Answers come back as JSON, never as objects.
"""

from __future__ import annotations

import mmap
import os
import resource
import select
import signal
import time
from collections.abc import Callable, Sequence

import msgspec

from inspector import engine
from inspector.audit.plans import Plan
from inspector.audit.subjects import Audited, Opened, content_of, state_of
from inspector.check import Check, Group
from inspector.engine import Assessment, Needs
from inspector.errors import InspectorError
from inspector.trajectory import Envelope, Trajectory
from inspector.verdict import Finding, Outcome

READING = 255  # in the progress byte: the line was still being decoded


class _Answer(msgspec.Struct):
    outcomes: bytes
    findings: list[Finding]
    notes: dict[int, str]
    content: int


def audit_alone(opened: Opened, plan: Plan, needs: Needs, limit_s: float) -> Audited:
    """One trajectory, one child, `limit_s` of CPU and of wall time."""
    progress = mmap.mmap(-1, 2)
    progress[0] = READING
    answer, end = _in_child(lambda: _assess(opened, plan, needs, progress), limit_s)
    header = msgspec.json.decode(opened.line, type=Envelope)
    grouped = opened.subject.group_id is not None
    if answer is None:
        where = "while the line was read" if progress[0] == READING else f"in {plan.checks[progress[0]].name}"
        return Audited(
            opened.claim, opened.subject, header, opened.declaration, None, plan.all_erred(f"worker died: {end} {where}", grouped=grouped), len(opened.added)
        )
    decoded = msgspec.json.decode(answer, type=_Answer)
    assessment = plan.spread(Assessment(decoded.outcomes, tuple(decoded.findings), decoded.notes), grouped=grouped)
    state = state_of(header, opened.subject.task)
    return Audited(opened.claim, opened.subject, header, opened.declaration, decoded.content, assessment, len(opened.added), state)


def group_alone(checks: Sequence[Check], opened: Sequence[Opened], group: Callable[[Sequence[Trajectory]], Group], limit_s: float) -> Assessment:
    """One group, one child; where it ends by itself every one of its checks is an error."""
    progress = mmap.mmap(-1, 2)
    progress[0] = READING
    answer, end = _in_child(lambda: _assess_group(checks, opened, group, progress), limit_s)
    if answer is None:
        where = "while the lines were read" if progress[0] == READING else f"in {checks[progress[0]].name}"
        return Assessment(bytes([Outcome.ERROR]) * len(checks), (), dict.fromkeys(range(len(checks)), f"worker died: {end} {where}"))
    decoded = msgspec.json.decode(answer, type=_Answer)
    return Assessment(decoded.outcomes, tuple(decoded.findings), decoded.notes)


def _assess_group(checks: Sequence[Check], opened: Sequence[Opened], group: Callable[[Sequence[Trajectory]], Group], progress: mmap.mmap) -> bytes:
    whole, needs = group([one.read() for one in opened]), Needs([opened[0].declaration])
    return _one_by_one(checks, progress, lambda check: engine.run_groups([check], [whole], needs), 0)


def _assess(opened: Opened, plan: Plan, needs: Needs, progress: mmap.mmap) -> bytes:
    trajectory = opened.read()
    return _one_by_one(plan.checks, progress, lambda check: engine.run([check], [trajectory], needs), content_of(trajectory, opened.subject.task))


def _one_by_one(checks: Sequence[Check], progress: mmap.mmap, run: Callable[[Check], list[Assessment]], content: int) -> bytes:
    outcomes = bytearray()
    findings: list[Finding] = []
    notes: dict[int, str] = {}
    for at, check in enumerate(checks):
        progress[0] = min(at, READING - 1)
        [one] = run(check)
        outcomes += one.outcomes
        findings += one.findings
        if one.notes:
            notes[at] = one.notes[0]
    return msgspec.json.encode(_Answer(bytes(outcomes), findings, notes, content))


def _in_child(work: Callable[[], bytes], limit_s: float) -> tuple[bytes | None, str]:
    """What `work` returned, or None with how the child ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _be_child(work, writer, limit_s)
    os.close(writer)
    try:
        answer = _read(reader, limit_s + 1.0)
    finally:
        os.close(reader)
        end = _reap(child)
    if answer is None:
        return None, f"no answer within {limit_s:g} s"
    return (answer, "") if end == 0 and answer else (None, f"killed by {signal.Signals(-end).name}" if end < 0 else f"exit status {end}")


def _be_child(work: Callable[[], bytes], writer: int, limit_s: float) -> None:
    """Never returns: the child leaves without running anything of the parent's."""
    status = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, limit_s)  # the default action ends the process also inside C code
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit_s) + 1, int(limit_s) + 2))
        answer = work()
        while answer:
            answer = answer[os.write(writer, answer) :]
        status = 0
    except InspectorError:
        status = 2
    finally:
        os._exit(status)


def _read(reader: int, limit_s: float) -> bytes | None:
    parts: list[bytes] = []
    ends = time.monotonic() + limit_s
    while select.select([reader], [], [], max(0.0, ends - time.monotonic()))[0]:
        part = os.read(reader, 1 << 16)
        if not part:
            return b"".join(parts)
        parts.append(part)
    return None


def _reap(child: int) -> int:
    os.kill(child, signal.SIGKILL) if _running(child) else None
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _running(child: int, patience_s: float = 0.2) -> bool:
    """Whether it has not ended by itself a moment after it closed its pipe."""
    ends = time.monotonic() + patience_s
    while time.monotonic() < ends:
        found = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is not None:
            return False
        time.sleep(0.005)
    return True


def deadline(limit_s: float) -> None:
    """End this process when it does not call `no_deadline` in time, also inside C code; a lease that ran out brings the work back."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, limit_s)


def no_deadline() -> None:
    """The block came back."""
    signal.setitimer(signal.ITIMER_REAL, 0)
