"""Keeps a foreign verifier loaded in a box, and has each submission graded by a fresh process of it."""

from __future__ import annotations

import json
import secrets
import time
import weakref
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, NamedTuple

from inspector.environments import boxes
from inspector.environments.protocol import AS_DECLARED, Conditions, Grade, Trouble, Unreadable
from inspector.sandbox.protocol import Backend, Box, Broken, Limits, Refused, Result

LOAD_S = 180.0
GRADE_S = 60.0
GRADES_A_BOX = 500  # then a new one, so that nothing that a verifier leaves behind lasts
CLOCK_EXITS = (124, 128 + 14, -14)  # who asked gave up, or the verifier's own clock ended it
LIMITS = Limits(wall_s=LOAD_S + GRADE_S, memory_bytes=4 << 30, pids=256, disk_bytes=512 << 20, output_bytes=16 << 20)
SERVE = 'cat >/tmp/setup; setsid python3 -s -P -c "$1" serve </tmp/setup >/tmp/said 2>&1 &'
ASKING = ["python3", "-I", "-S", "-c", boxes.source("asking")]
GONE_S = 0.1  # for the process that answered to be buried
SETTLED_S = 5.0  # for a verifier that was just loaded to come to rest


class _Trace(NamedTuple):
    """What can be seen of a box from outside."""

    alive: frozenset[int]
    changed: frozenset[str]


def _trace(box: Box) -> _Trace:
    return _Trace(box.alive(), frozenset(box.diff().changes))


def _settled(box: Box) -> _Trace | None:
    """Once who answered is buried; None where the verifier never comes to rest, so that nothing can be told from it."""
    ends, before, now = time.monotonic() + SETTLED_S, None, _trace(box)
    while now != before:
        if time.monotonic() > ends:
            return None
        time.sleep(GONE_S / 2)
        before, now = now, _trace(box)
    return now


@dataclass
class Grader:
    """One verifier: the text that loads it, what that is told, and files that it finds in its box."""

    backend: Backend
    runner: str
    setup: Mapping[str, Any]
    files: Mapping[str, bytes] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)
    _open: ExitStack = field(default_factory=ExitStack)
    _box: Box | None = None
    _grades: int = 0
    _clean: _Trace | None = None  # the box before its first submission

    def tell(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What the verifier says of itself. Raises Unreadable where it cannot be loaded, Refused and Broken."""
        said, result = self._ask(request, AS_DECLARED)
        why = "ended without an answer" if said is None else said.get("failed") or said.get("raised")
        if why and (missing := why.strip().rpartition("\n")[2]).startswith("ModuleNotFoundError: "):
            raise Unreadable(f"{self.runner.replace('_', '-')}: {missing[:300]}")
        if said is None or why:
            raise Unreadable(f"{self.runner.replace('_', '-')}: {(why or '')[-600:]}{boxes.tail(result, 600) if said is None else ''}")
        return said

    def grade(self, request: Mapping[str, Any], conditions: Conditions) -> Grade:
        """What the verifier says of a submission."""
        try:
            said, result = self._ask(request, conditions)
        except (Refused, Broken) as error:
            return boxes.troubled(error)
        if said is None:
            return _unanswered(result, conditions.timeout_s or GRADE_S)
        return boxes.measured(read_answer(said), result)

    def _ask(self, request: Mapping[str, Any], conditions: Conditions) -> tuple[dict[str, Any] | None, Result]:
        able = self.backend.capabilities.services and self.backend.capabilities.snapshot  # or what a submission left could not be seen
        served = able and boxes.variables(conditions) == boxes.variables(AS_DECLARED) and not conditions.network
        with self._lock:
            answer, result = self._ask_served(request, conditions) if served else self._ask_once(request, conditions)
            said = _decoded(answer)
            if said is None or not self._as_before():
                self._end()
        return said, result

    def _ask_served(self, request: Mapping[str, Any], conditions: Conditions) -> tuple[bytes | None, Result]:
        box, seconds = self._served(), conditions.timeout_s or GRADE_S
        word = secrets.token_hex(16).encode()
        stdin = b"%b\n%f\n%f\n%b" % (word, LOAD_S, seconds, json.dumps({**request, "seconds": seconds}).encode())
        result = box.run(ASKING, timeout_s=LOAD_S + 2 * seconds, stdin=stdin)
        _, found, answer = result.stdout.partition(word)
        self._grades += 1
        return answer if found else None, result

    def _served(self) -> Box:
        if self._grades >= GRADES_A_BOX:
            self._end()
        if self._box is None:
            box = self._open.enter_context(self.backend.create(limits=LIMITS, environment=boxes.variables(AS_DECLARED), session=True))
            weakref.finalize(self, self._open.close)  # made after the backend's own, and so called before it
            self._put(box)
            box.run(["/bin/sh", "-c", SERVE, "sh", self._text], stdin=json.dumps(self.setup).encode(), timeout_s=30)
            box.run(
                ASKING, timeout_s=2 * LOAD_S, stdin=b'\n%f\n%f\n{"seconds": 60}' % (LOAD_S, LOAD_S)
            )  # until it is loaded; what it says to nothing is of no interest
            self._box, self._clean = box, _settled(box)
        return self._box

    def _as_before(self) -> bool:
        """Whether a submission left nothing: no process that could answer in the verifier's place, no file that could change it."""
        if self._box is None:
            return True
        ends = time.monotonic() + GONE_S
        try:
            while self._clean is None or _trace(self._box) != self._clean:
                if self._clean is None or time.monotonic() > ends:
                    return False
                time.sleep(0.01)
        except (Broken, Refused):  # the answer was there before; the box is of no more use
            return False
        return True

    def _end(self) -> None:
        self._open.close()
        self._box, self._grades, self._clean = None, 0, None

    def _ask_once(self, request: Mapping[str, Any], conditions: Conditions) -> tuple[bytes | None, Result]:
        network, seconds = boxes.network_of(conditions), conditions.timeout_s or GRADE_S
        word = secrets.token_hex(16).encode()
        stdin = b"%b\n%b\n%b" % (word, json.dumps(self.setup).encode(), json.dumps({**request, "seconds": seconds}).encode())
        with boxes.fresh(self.backend, limits=LIMITS, network=network) as box:
            self._put(box)
            result = box.run(boxes.python(self._text), timeout_s=LOAD_S + seconds, stdin=stdin, environment=boxes.variables(conditions))
        _, found, answer = result.stdout.partition(word)
        return answer if found else None, result

    def _put(self, box: Box) -> None:
        for path, data in self.files.items():
            box.write(path, data)

    @property
    def _text(self) -> str:
        return f"{boxes.source(self.runner)}\n{boxes.source('serving')}"


def _unanswered(result: Result, seconds: float) -> Grade:
    if result.exit_code in CLOCK_EXITS:
        return boxes.measured(Grade(None, trouble=Trouble.TIMED_OUT, evidence=f"timeout: no answer within {seconds:g} s"), result)
    silent = Grade(None, trouble=Trouble.MALFORMED, evidence=f"the verifier ended without an answer\n{boxes.tail(result)}")
    return boxes.ended(result, seconds) or boxes.measured(silent, result)


def _decoded(answer: bytes | None) -> dict[str, Any] | None:
    try:
        said = json.loads(answer) if answer else None
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def read_answer(said: Mapping[str, Any]) -> Grade:
    """A grade from what a verifier answered."""
    evidence = "\n".join(str(said[name]) for name in ("malformed", "raised", "failed", "note", "printed") if said.get(name))[-boxes.EVIDENCE_BYTES :]
    if said.get("failed"):
        return Grade(None, trouble=Trouble.NOT_BUILT, evidence=evidence)
    reward = said.get("reward")
    if isinstance(reward, bool):
        reward = float(reward)
    if not isinstance(reward, int | float) or boxes.finite(reward) is None:
        what = "" if "raised" in said or "malformed" in said else f"the reward is {reward!r:.80}, no finite number"
        return Grade(None, trouble=Trouble.MALFORMED, evidence=f"{what}\n{evidence}".strip())
    return Grade(float(reward), evidence=evidence)
