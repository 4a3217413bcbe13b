"""Which state an episode left behind, told by the digests of what was attached to it, and what such a state deleted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

from inspector.errors import BadSubmission
from inspector.trajectory import Header

ROLE = "final_state"
WHITEOUT = ".wh."  # before a name, as image layers of the OCI have it: what bears the name is deleted
OPAQUE = ".wh..wh..opq"  # in a folder: nothing of it that was there before is left
RESERVED = ".wh..wh."


class Left(NamedTuple):
    """The paths of a posted state, by what they say; all below /."""

    files: list[PurePosixPath]
    deleted: list[PurePosixPath]
    emptied: list[PurePosixPath]  # folders, before the files in them were written


def final_states(header: Header) -> list[str]:
    """The sha256 of each attached final state in hexadecimal, sorted."""
    return sorted({artifact.sha256.removeprefix("sha256:") for artifact in header.artifacts or () if artifact.role == ROLE})


def state_digest(header: Header) -> bytes | None:
    """Bytes that are equal where the same state was graded by the same verifier.

    None where no state is attached, and where the episode was cut: its reward may speak of the limit.
    """
    cut = header.termination is not None and (header.termination.truncated or header.termination.timed_out)
    if cut or not (states := final_states(header)):
        return None
    return hashlib.sha256("\n".join([header.environment.verifier_digest or "", *states]).encode()).digest()


def read_whiteouts(files: Iterable[tuple[PurePosixPath, int]]) -> Left:
    """Tell what was deleted from what was left, of the files of a state with their lengths. Raises BadSubmission for what deletes nothing that can be named."""
    left = Left([], [], [])
    for path, length in files:
        if any(part.startswith(WHITEOUT) for part in path.parts[:-1]):
            raise BadSubmission(f"{str(path)!r:.200} lies in a folder named as a deletion", path="$.artifacts")
        if not path.name.startswith(WHITEOUT):
            left.files.append(path)
        elif length:
            raise BadSubmission(f"{str(path)!r:.200} is named as a deletion, and holds {length} bytes", path="$.artifacts")
        elif path.name == OPAQUE and path.parent.name:
            left.emptied.append(path.parent)
        else:
            left.deleted.append(path.with_name(_deleted(path)))
    return left


def _deleted(path: PurePosixPath) -> str:
    name = path.name.removeprefix(WHITEOUT)
    if name in ("", ".", "..") or path.name.startswith(RESERVED):
        raise BadSubmission(f"{str(path)!r:.200} deletes nothing that can be named", path="$.artifacts")
    return name
