"""What this process knows of the feed: states of environment versions and tasks, and what stands for each trajectory.

Reading takes no lock: every answer is one look into a dict, and only the follower's thread writes.
"""

from __future__ import annotations

import os
import secrets
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from inspector.client.advice import Admission, lowered
from inspector.task import State, audit_rate
from inspector.verdict import Action, Decision, Mode, Scope

STANDING_KEPT = 65_536  # trajectories and groups whose last decision is remembered
REFUSED = (State.QUARANTINED, State.RETIRED)


class Standing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of an environment version, or of one of its tasks."""

    environment: str
    version: str
    task: str | None = None
    state: State
    sampling_weight: float | None = None
    audit_rate: float | None = None  # None from a service that does not say it
    seq: int = 0


class Saved(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A view as it is kept for a cold start."""

    epoch: str
    seq: int
    modes: dict[str, Mode] = {}  # by run
    states: list[Standing] = []
    rollbacks: list[Decision] = []


ACTIVE = Standing(environment="", version="", state=State.ACTIVE)
Place = tuple[str, str, str | None]


class View:
    """The standing state at (epoch, seq)."""

    def __init__(self, ceiling: Mode | None = None) -> None:
        self.epoch, self.seq = "", 0
        self.floor: tuple[str, int] | None = None  # what a checkpoint was trained under, and this view has not reached
        self.whole = True  # False: what stands of single trajectories was not saved with the rest, and is still to be read
        self._ceiling = ceiling
        self._modes: dict[str, Mode] = {}
        self._states: dict[Place, Standing] = {}
        self._standing: OrderedDict[tuple[Scope, str], Decision] = OrderedDict()
        self._rollbacks: dict[str, Decision] = {}  # the last word on each run: advice to go back, or that it no longer stands

    def admit(self, environment: str, version: str, task: str | None, run: str | None) -> Admission:
        """Whether this environment version, or this task of it, may be used; the stricter of the two states counts."""
        whole = self._states.get((environment, version, None), ACTIVE)
        part = self._states.get((environment, version, task), ACTIVE) if task is not None else ACTIVE
        strictest = part if part.state in REFUSED and whole.state not in REFUSED else (whole if whole.state is not State.ACTIVE else part)
        refused = strictest.state in REFUSED
        mode = lowered(self.mode(run) or Mode.OBSERVE, self._ceiling)
        return Admission(
            admitted=not (refused and mode is Mode.ENFORCE), state=strictest.state, mode=mode, would_refuse=refused,
            sampling_weight=0.0 if refused else _weight(whole) * _weight(part), audit_rate=max(_audit_rate(whole), _audit_rate(part)),
        )  # fmt: skip

    def mode(self, run: str | None) -> Mode | None:
        """The run's mode as last heard; None before anything was heard of it."""
        return self._modes.get(run or "")

    def hear_mode(self, run: str | None, mode: Mode) -> None:
        """The service said in which mode a run is."""
        self._modes[run or ""] = self._modes[""] = mode

    def standing(self, trajectory_id: str, group: str | None = None) -> Decision | None:
        """The last decision of the feed for a trajectory, or for its group where that is later."""
        own = self._standing.get((Scope.TRAJECTORY, trajectory_id))
        whole = self._standing.get((Scope.GROUP, group)) if group is not None else None
        return max((found for found in (own, whole) if found), key=lambda decision: decision.seq, default=None)

    def rollback(self, run: str) -> Decision | None:
        """The advice to go back that stands for a run."""
        decision = self._rollbacks.get(run)
        return decision if decision is not None and decision.action is Action.ADVISE_ROLLBACK and decision.rollback is not None else None

    def binds(self, run: str | None) -> bool:
        """Whether the run is in enforce mode, also for this client."""
        return lowered(self.mode(run) or Mode.OBSERVE, self._ceiling) is Mode.ENFORCE

    def apply(self, decision: Decision) -> None:
        """One entry of the feed."""
        if decision.run is not None:
            self._modes[decision.run] = decision.mode
        if decision.action is Action.SET_STATE and decision.environment is not None and decision.version is not None and decision.state is not None:
            self.set_state(
                Standing(
                    environment=decision.environment, version=decision.version, task=decision.task if decision.scope is Scope.TASK else None,
                    state=decision.state, sampling_weight=decision.sampling_weight, audit_rate=decision.audit_rate, seq=decision.seq,
                )
            )  # fmt: skip
        self._remember(decision)

    def set_state(self, standing: Standing) -> None:
        """A later state replaces an earlier one, whatever order they come in."""
        place = (standing.environment, standing.version, standing.task)
        if standing.seq >= self._states.get(place, ACTIVE).seq:
            self._states[place] = standing

    def reach(self, epoch: str, seq: int) -> None:
        """Everything up to here is applied."""
        self.epoch, self.seq = epoch, seq
        if self.floor is not None and (epoch != self.floor[0] or seq >= self.floor[1]):
            self.floor = None

    def restart(self, epoch: str, seq: int, states: Iterable[Standing], decisions: Iterable[Decision]) -> None:
        """Replace everything by a snapshot; whoever reads meanwhile sees the old or the new, never a half."""
        fresh = {(standing.environment, standing.version, standing.task): standing for standing in states}
        self._standing, self._rollbacks = OrderedDict(), {}
        for decision in decisions:  # not their modes: the run may be in another by now
            self._remember(decision)
        self._states = fresh
        self.epoch, self.seq, self.floor, self.whole = epoch, seq, None, True

    def complete(self, decisions: Iterable[Decision]) -> None:
        """Add what stands of single trajectories by a snapshot of the same epoch; what is known to be newer stays."""
        for decision in decisions:
            self._remember(decision)
        self.whole = True

    def saved(self) -> Saved:
        """For `restored`."""
        return Saved(epoch=self.epoch, seq=self.seq, modes=dict(self._modes), states=list(self._states.values()), rollbacks=list(self._rollbacks.values()))

    def restored(self, saved: Saved) -> None:
        """Start from what another process, or this one earlier, knew."""
        self._states = {(standing.environment, standing.version, standing.task): standing for standing in saved.states}
        self._modes = dict(saved.modes)
        self._rollbacks = {decision.run: decision for decision in saved.rollbacks if decision.run is not None}
        self.reach(saved.epoch, saved.seq)
        self.whole = False

    def state_dict(self) -> dict[str, Any]:
        """What belongs into a training checkpoint: under which decisions it was trained."""
        epoch, seq = self.floor or (self.epoch, self.seq)
        return {"epoch": epoch, "seq": seq}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Promise to know at least what the checkpoint knew. Decisions made since then stand as well."""
        epoch, seq = str(state["epoch"]), int(state["seq"])
        if epoch and (epoch != self.epoch or seq > self.seq):
            self.floor = (epoch, seq)

    def _remember(self, decision: Decision) -> None:
        if decision.scope is Scope.RUN and decision.run is not None:
            known = self._rollbacks.get(decision.run)
            if known is None or known.seq < decision.seq:
                self._rollbacks[decision.run] = decision
            return
        # What names its trajectory is about that one, even where its group was decided: other runs may have groups of the same name.
        if decision.trajectory is not None and decision.scope in (Scope.TRAJECTORY, Scope.GROUP):
            subject = (Scope.TRAJECTORY, decision.trajectory)
        elif decision.group is not None and decision.scope is Scope.GROUP:
            subject = (Scope.GROUP, decision.group)
        else:
            return
        if (known := self._standing.get(subject)) is not None and known.seq > decision.seq:
            return
        self._standing[subject] = decision
        self._standing.move_to_end(subject)
        while len(self._standing) > STANDING_KEPT:
            self._standing.popitem(last=False)


def _weight(standing: Standing) -> float:
    return 1.0 if standing.sampling_weight is None else standing.sampling_weight


def _audit_rate(standing: Standing) -> float:
    return audit_rate(standing.state) if standing.audit_rate is None else standing.audit_rate


def save(view: View, path: Path) -> None:
    """Write a view so that a reader finds the old or the new one, never a half. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "wb") as opened:
        opened.write(msgspec.json.encode(view.saved()))
    beside.replace(path)


def load(path: Path) -> Saved | None:
    """A saved view; None when there is none that can be read, since the feed can always be read anew."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Saved)
    except (OSError, msgspec.DecodeError):
        return None
