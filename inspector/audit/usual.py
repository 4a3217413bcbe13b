"""What audits know of the ordinary: the model that holds in each project, read once and looked after every two seconds."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import structlog
from sqlmodel import Session

from inspector.anomaly import model
from inspector.anomaly.arrays import BadArrays
from inspector.anomaly.learning import NEEDED, NEEDED_OF_ENVIRONMENT
from inspector.anomaly.model import Model, Place
from inspector.check import Baselines, Check
from inspector.store import baselines

log = structlog.get_logger()
FRESH_S = 2.0
PROJECTS = 32  # whose models are held at once; one takes about a megabyte


class _Held(NamedTuple):
    version: int | None
    known: Mapping[Place, Baselines]
    otherwise: Baselines  # of environment versions that it does not know
    until: float


class Usual:
    """The models of this process."""

    def __init__(self) -> None:
        self._held: dict[int, _Held] = {}

    def of(self, session: Session, project: int, places: Iterable[Place]) -> dict[Place, Baselines]:
        """What the checks of these environment versions may ask for."""
        held = self._held.get(project)
        if held is None or held.until < time.monotonic():
            held = self._held[project] = self._look(session, project, held)
            while len(self._held) > PROJECTS:
                del self._held[next(iter(self._held))]
        return {place: held.known.get(place, held.otherwise) for place in places}

    def _look(self, session: Session, project: int, held: _Held | None) -> _Held:
        latest = baselines.latest(session, project)
        until = time.monotonic() + FRESH_S
        if latest is None:
            return _Held(None, {}, Baselines(why=_too_few(baselines.posted(session, project, NEEDED))), until)
        if held is not None and held.version == latest.version:
            return held._replace(until=until)
        fitted = _read(session, project, latest)
        if fitted is None:
            return _Held(latest.version, {}, Baselines(why=f"baseline {latest.version} cannot be used by this version; the next one is to come"), until)
        why = f"baseline {fitted.version} knows fewer than {NEEDED_OF_ENVIRONMENT} episodes of this environment version"
        return _Held(fitted.version, fitted.baselines(), Baselines(why=why), until)


def needed(checks: Iterable[Check]) -> bool:
    """Whether any of these asks for it."""
    return any(Baselines in check.needs for check in checks)


def _too_few(posted: int) -> str:
    if posted < NEEDED:
        return f"{posted} trajectories of this project, needs {NEEDED}"
    return f"no model was fitted yet; that needs {NEEDED} trajectories in environment versions with {NEEDED_OF_ENVIRONMENT} or more each"


def _read(session: Session, project: int, latest: baselines.Fitted) -> Model | None:
    body = baselines.body(session, project, latest.version)
    if body is None:
        return None
    if model.digest(body) != latest.digest:
        log.error("damaged baseline", project=project, version=latest.version)
        return None
    try:
        return model.unpack(body, latest.version)
    except BadArrays as error:
        log.error("damaged baseline", project=project, version=latest.version, reason=str(error))
        return None
