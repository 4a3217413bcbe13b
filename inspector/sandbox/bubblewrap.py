"""Boxes by bubblewrap: namespaces, an overlay on immutable layers, control groups and a system call filter; nothing of it needs a daemon."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from math import inf
from pathlib import Path

from inspector.sandbox import cgroups, ground, stage
from inspector.sandbox.box import BubblewrapBox, Plan
from inspector.sandbox.ground import break_ground
from inspector.sandbox.launch import Program
from inspector.sandbox.probing import USER, find_program, lacks
from inspector.sandbox.protocol import Box, Broken, Capabilities, Layer, Limits, Network, Refused
from inspector.sandbox.session import Session
from inspector.sandbox.spare import Kind, Spare, prepare
from inspector.sandbox.spares import Spares
from inspector.sandbox.stage import Stage

OPTION_BYTES = 3900  # of one mount: the kernel takes a page
MOST = {"wall_s": inf, "cpus": 1e5}  # far more than machines have, and what the kernel still counts
DEFAULT = Limits()


_backends: weakref.WeakSet[Bubblewrap] = weakref.WeakSet()


class Bubblewrap:
    """Makes boxes on this machine. Safe to use after a fork; each process has a stage of its own."""

    def __init__(self, folder: Path | None = None, *, network: bool = False, ahead: bool = True) -> None:
        self._folder = folder
        self._ahead = ahead
        self._network = frozenset(Network) if network else frozenset({Network.OFF})
        self._stage: Stage | None = None
        self._program: Program | None = None  # seen by a window of the stage
        self._spares: Spares | None = None
        self._lock = threading.RLock()
        self._found: Capabilities | None = None
        _backends.add(self)

    def forked(self) -> None:
        """Called in a child, which has none of the threads that may have held the lock."""
        self._lock = threading.RLock()

    @property
    def capabilities(self) -> Capabilities:
        """Found out once, by trying a box."""
        with self._lock:
            return self._look() if self._found is None else self._found

    def _look(self) -> Capabilities:
        missing = lacks()
        given = Capabilities("bubblewrap", snapshot=not missing, network=self._network, root=False, services=not missing, missing=missing)
        self._found = given if missing else self._tried(given)
        return self._found

    def _tried(self, given: Capabilities) -> Capabilities:
        try:
            with self._make((), Limits(), Network.OFF, {}, "/") as box:
                box.write("/tmp/a", b"")  # noqa: S108 - a place in the box
                result = box.run(["/bin/sh", "-c", "rm -r /tmp && mkdir /tmp"])
        except (Broken, Refused) as error:
            return replace(given, snapshot=False, services=False, missing={"box": str(error)})
        return given if result.ok else replace(given, snapshot=False, services=False, missing={"overlay": result.stderr.decode(errors="replace").strip()})

    def create(
        self,
        layers: Sequence[Layer] = (),
        *,
        limits: Limits = DEFAULT,
        network: Network = Network.OFF,
        environment: Mapping[str, str] | None = None,
        cwd: str = "/",
        session: bool = False,
    ) -> Box:
        """A box on these layers. Raises Refused and Broken."""
        if missing := self.capabilities.missing:
            raise Refused(f"this machine gives no box: {'; '.join(f'{what}: {why}' for what, why in missing.items())}")
        if network not in self.capabilities.network:
            raise Refused("the operator gives boxes no network")
        if wrong := [each.name for each in fields(limits) if not 0 <= getattr(limits, each.name) <= MOST.get(each.name, 1 << 62)]:
            raise Refused(f"no box can be limited to {wrong[0]} of {getattr(limits, wrong[0])}")
        return self._make([layer.path for layer in layers], limits, network, environment or {}, cwd, Session if session else BubblewrapBox)

    def waiting(self) -> int:
        """How many boxes made ahead wait now."""
        return len(self._spares.waiting) if self._spares else 0

    def _make(
        self, layers: Sequence[Path], limits: Limits, network: Network, environment: Mapping[str, str], cwd: str, kind: type[BubblewrapBox] = BubblewrapBox
    ) -> BubblewrapBox:
        here, program = self._standing()
        plan = Plan(self._kind(layers, limits, network, here), {**here.root.variables, **environment}, cwd, {sys.executable: here.root.python})
        spares = self._spares if kind is BubblewrapBox else None
        spare = spares.take(plan.kind) if spares else None
        return kind(here, program, spare.ground if spare else break_ground(here, limits, USER), plan, spare, spares)

    def _standing(self) -> tuple[Stage, Program]:
        with self._lock:
            if self._stage is None or self._program is None or self._stage.pid != os.getpid():
                self._stage = stage.raise_stage(self._folder, USER, cgroups.here())
                atexit.register(self._stage.close)
                self._program = find_program(self._stage.reachable)
                self._spares = _spares_of(self._stage, self._program) if self._ahead else None
                if self._spares:
                    atexit.register(self._spares.close)  # before the stage is taken away
            return self._stage, self._program

    def _kind(self, layers: Sequence[Path], limits: Limits, network: Network, here: Stage) -> Kind:
        """With the layers as a box may name them. Raises Refused and Broken."""
        for path in layers:
            if not path.is_dir():
                raise Refused(f"there is no layer {path.name}")
        try:
            seen = Kind.of([here.seen(path) for path in layers], limits, network)
        except OSError as error:
            raise Broken(f"no layer for a box: {error}") from error
        if sum(len(str(path)) + len("/oldroot:") for path in seen.layers) > OPTION_BYTES:
            raise Refused(f"{len(layers)} layers are more than one box can stand on")
        return seen


def _spares_of(here: Stage, program: Program) -> Spares:
    def discard(spare: Spare) -> None:
        spare.end()
        ground.clear(spare.ground, here)

    return Spares(partial(prepare, here, program), discard)


def _forked() -> None:
    for backend in _backends:
        backend.forked()


os.register_at_fork(after_in_child=_forked)
