"""Fields of a trajectory that came later than its line; each once."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlmodel import Session

from inspector.errors import Conflict
from inspector.store.session import driver


def add(session: Session, key: UUID, field: str, value: bytes) -> bool:
    """Keep a field; False when the same was said before. Raises Conflict for another value."""
    connection = driver(session)
    added = connection.execute("INSERT INTO patch (key, field, value) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", (key, field, value)).rowcount
    if added:
        return True
    row = connection.execute("SELECT value FROM patch WHERE key = %s AND field = %s", (key, field)).fetchone()
    if row is not None and bytes(row[0]) != value:
        raise Conflict(f"{field} was added before, with another value", path=f"$.{field}")
    return False


def of(session: Session, keys: Sequence[UUID]) -> dict[UUID, dict[str, bytes]]:
    """What was added to these trajectories, by field; most have nothing."""
    found: dict[UUID, dict[str, bytes]] = {}
    for key, field, value in driver(session).execute("SELECT key, field, value FROM patch WHERE key = ANY(%s)", (list(keys),)).fetchall():
        found.setdefault(key, {})[field] = bytes(value)
    return found
