"""Changes the state of an environment version or of one of its tasks, and tells every project that posted it."""

from __future__ import annotations

from sqlmodel import Session

from inspector.store import decisions, environments
from inspector.store.environments import Standing
from inspector.task import State

PROBATION_WEIGHT = 0.25  # of the usual sampling, where nobody says otherwise


def set_state(
    session: Session,
    environment: str,
    version: str,
    task: str | None,
    state: State,
    *,
    author: str,
    note: str,
    weight: float | None = None,
    project: int | None,
) -> dict[int, int]:
    """Put it in a state; the feed head of each project that was told. Raises Unknown for what `project` does not see (None sees all)."""
    environment_version = environments.find(session, project, environment, version)
    task_id = environments.find_task(session, environment_version, task) if task is not None else None
    if state is State.PROBATION and weight is None:
        weight = PROBATION_WEIGHT
    before = environments.set_state(session, environment_version, task_id, state, weight, author=author, note=note)
    reason = f"{before.value} -> {state.value}" + (f": {note}" if note else "")
    decision = decisions.of_state(Standing(environment, version, task, state, weight), author=author, reason=reason)
    return decisions.append_states(session, {project_id: [decision] for project_id in environments.projects_of(session, environment_version)})


def watch(session: Session, environment: str, version: str, reason: str) -> dict[int, int]:
    """Put an active environment version on watch; nothing happens to one that is in another state."""
    environment_version = environments.find(session, None, environment, version)
    environments.lock(session, environment_version)  # a person may be quarantining it at this moment
    if environments.one(session, environment_version)[0] is not State.ACTIVE:
        return {}
    return set_state(session, environment, version, None, State.WATCH, author="policy", note=reason, project=None)
