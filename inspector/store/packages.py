"""What environment versions are made of, for those who probe them: uploaded tars, and how they are opened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec
from sqlmodel import Session

from inspector.errors import Conflict, Unknown
from inspector.store.session import driver


class Package(NamedTuple):
    """An uploaded tar that holds an environment version, or the name of what lies elsewhere."""

    sha256: str | None
    face: str
    entry: str | None = None  # what is opened inside it; None: all that is in it; of a named face, the name
    dataset: str | None = None  # a file inside it


class Scores(NamedTuple):
    """How many tasks of a version were probed, and have each outcome; a task may have several."""

    probed: int
    counts: Mapping[str, int]
    probed_at: datetime | None  # the last of them


class Registered(NamedTuple):
    """A package as it is known."""

    package: Package
    project: int  # whose artifact it is
    project_uuid: UUID
    content_version: str | None  # None until a worker has read it
    verifier_digest: str | None
    one_verifier: bool  # of all its tasks
    hints: bytes | None  # of the lint, JSON
    put_at: datetime
    scores: Scores


NO_SCORES = Scores(0, {}, None)


def put(session: Session, environment_version: int, project: int, package: Package) -> bool:
    """Say what a version is made of; False where it was said before. Raises Conflict for something else than what was probed."""
    connection = driver(session)
    written = connection.execute(
        "INSERT INTO package (environment_version, project, sha256, face, entry, dataset) VALUES (%s, %s, %s, %s, %s, %s)"
        " ON CONFLICT (environment_version) DO UPDATE SET project = excluded.project, sha256 = excluded.sha256, face = excluded.face,"
        " entry = excluded.entry, dataset = excluded.dataset, put_at = CASE WHEN (package.sha256, package.face, package.entry, package.dataset)"
        " IS NOT DISTINCT FROM (excluded.sha256, excluded.face, excluded.entry, excluded.dataset) THEN package.put_at ELSE clock_timestamp() END"
        " WHERE package.content_version IS NULL RETURNING xmax = 0",
        (environment_version, project, None if package.sha256 is None else bytes.fromhex(package.sha256), package.face, package.entry, package.dataset),
    ).fetchone()
    if written is None and of(session, environment_version).package != package:
        raise Conflict("this version was probed as another package: register what has changed as a version of its own", path="$.artifact")
    return written is not None and bool(written[0])


def of(session: Session, environment_version: int) -> Registered:
    """What a version is made of; raises Unknown where nobody has said it."""
    row = (
        driver(session)
        .execute(
            "SELECT encode(sha256, 'hex'), face, entry, dataset, project, uuid, content_version, verifier_digest, one_verifier, hints, put_at,"
            " probed, counts, probed_at FROM package JOIN project ON project.id = package.project WHERE environment_version = %s",
            (environment_version,),
        )
        .fetchone()
    )
    if row is None:
        raise Unknown("package of environment version", environment_version)
    sha256, face, entry, dataset, *known, probed, counts, probed_at = row
    return Registered(*(Package(sha256, face, entry, dataset), *known, scores_of(probed, counts, probed_at)))


def scores_of(probed: int, counts: bytes | None, probed_at: datetime | None) -> Scores:
    """As they are stored."""
    return Scores(probed, msgspec.json.decode(counts, type=dict[str, int]) if counts else {}, probed_at)


def owner_of(session: Session, environment_version: int) -> int | None:
    """The project that registered a version; None where none did."""
    row = driver(session).execute("SELECT project FROM package WHERE environment_version = %s", (environment_version,)).fetchone()
    return None if row is None else int(row[0])


def learn(session: Session, environment_version: int, content_version: str, verifier_digest: str, hints: bytes, *, one_verifier: bool) -> None:
    """What the first worker that read it found."""
    driver(session).execute(
        "UPDATE package SET content_version = %s, verifier_digest = %s, hints = %s, one_verifier = %s"
        " WHERE environment_version = %s AND content_version IS NULL",
        (content_version, verifier_digest, hints, one_verifier, environment_version),
    )


def count(session: Session, environment_version: int, more: Counter[str], fewer: Counter[str], new: int) -> None:
    """Tasks of a version have these outcomes from now on and those no more; `new` ones had none. Its lock is to be held."""
    connection = driver(session)
    row = connection.execute("SELECT counts FROM package WHERE environment_version = %s", (environment_version,)).fetchone()
    known = Counter(msgspec.json.decode(row[0], type=dict[str, int]) if row and row[0] else {})
    known.update(more)
    known.subtract(fewer)
    connection.execute(
        "UPDATE package SET counts = %s, probed = probed + %s, probed_at = clock_timestamp() WHERE environment_version = %s",
        (msgspec.json.encode({outcome: tasks for outcome, tasks in sorted(known.items()) if tasks}), new, environment_version),
    )
