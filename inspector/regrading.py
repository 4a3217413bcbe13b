"""Has the stored final states of an environment version graded again by a repaired verifier, a few at a time."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Engine
from sqlmodel import Session

from inspector.audit import subjects
from inspector.errors import Forbidden
from inspector.final_states import final_states
from inspector.store import environments, packages, regrades
from inspector.store.regrades import Suspect
from inspector.store.segments import SegmentReader
from inspector.store.session import transaction
from inspector.store.work import Claim

AT_ONCE = 200  # trajectories whose lines are read in one transaction
DELAY_S = 3600.0  # that states which new trajectories left go first


def ask(session: Session, project: int, environment: str, version: str, by: str, most: int) -> int:
    """Have at most `most` states graded by the package of the version `by`, whose tasks ask for the same. Raises Unknown and Forbidden."""
    environment_version = environments.find(session, project, environment, version)
    grader = environments.find(session, project, environment, by)
    for one, named in ((environment_version, version), (grader, by)):
        if not environments.owns(session, project, one):
            raise Forbidden(f"another project declared {environment}@{named}, and alone may say that its verifier is repaired")
    packages.of(session, grader)
    return regrades.ask(session, project, environment_version, grader, most)


def advance(engine: Engine, reader: SegmentReader) -> int:
    """Look at the next trajectories of what was asked for; how many states now wait for the repaired verifier."""
    with transaction(engine) as session:
        regrade = regrades.next_open(session)
        if regrade is None:
            return 0
        found = regrades.suspects(session, regrade, AT_ONCE)
        states = _states(session, reader, found)[: regrade.left]
        added = regrades.add(session, regrade, states, DELAY_S) if states else 0
        after = found[-1].key if found else regrade.after
        regrades.advance(session, regrade, after, len(states), done=len(found) < AT_ONCE or len(states) >= regrade.left)
        return added


def _states(session: Session, reader: SegmentReader, found: Sequence[Suspect]) -> list[tuple[UUID, str]]:
    """Those that left one state; several are none that a verifier takes."""
    claims = [Claim(0, 0, suspect.project, suspect.key, None, 0) for suspect in found]
    opened, _ = subjects.open_block(session, reader, claims)
    left = [(one.subject.key, final_states(one.read().header)) for one in opened]
    return [(key, states[0]) for key, states in left if len(states) == 1]
