"""Adds to a trajectory what its verifier said later: only what was null, and each field once."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType
from sqlmodel import Session

from inspector.errors import BadSubmission, Conflict, TooLarge
from inspector.settings import Limits
from inspector.store import look_backs, patches, trajectories, work
from inspector.store.segments import SegmentReader
from inspector.trajectory import ArtifactRef, Envelope, Header, Number, Reward, Trajectory, VerifierReport


class Amendment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields that may come later, with their values; a field that is left out is not touched."""

    reward: Number | UnsetType = UNSET
    rewards: dict[str, Reward | None] | UnsetType = UNSET
    verifier: VerifierReport | UnsetType = UNSET
    artifacts: list[ArtifactRef] | UnsetType = UNSET


FIELDS = Amendment.__struct_fields__


def amend(
    session: Session, reader: SegmentReader, project: int, key: UUID, amendment: Amendment, *, envelope_bytes: int = Limits().envelope_bytes
) -> list[str]:
    """The fields that are new by it; the trajectory is then audited again, with the standing decision until it is superseded.

    Raises Unknown, BadSubmission when nothing is given or the envelope would outgrow `envelope_bytes` by all that was added,
    and Conflict where the field was not null.
    """
    given = {name: value for name in FIELDS if (value := getattr(amendment, name)) is not UNSET}
    if not given:
        raise BadSubmission(f"nothing to add: give one of {', '.join(FIELDS)}", path="$")
    subject = trajectories.find(session, project, key)
    posted = msgspec.json.decode(reader.line(subject.project_uuid, subject.location), type=Envelope)
    for name in given:
        if getattr(posted, name) is not None:
            raise Conflict(f"{name} came with the line itself; only what was null can be added", path=f"$.{name}")
    encoded = {name: msgspec.json.encode(value) for name, value in given.items()}
    _check_size({**patches.of(session, [key]).get(key, {}), **encoded}, envelope_bytes)
    added = [name for name, value in encoded.items() if patches.add(session, key, name, value)]
    if "reward" in added and amendment.reward is not UNSET:
        trajectories.set_reward(session, key, amendment.reward)
        look_backs.add(session, [key])  # others with the same steps or the same final state learn of it by the sweep
    if added:
        work.add_trajectories(session, project, [key], priority=0)
    return added


def _check_size(fields: Mapping[str, bytes], limit: int) -> None:
    size = sum(len(value) for value in fields.values())
    if size > limit:
        largest = max(fields, key=lambda name: len(fields[name]))
        raise TooLarge(f"the added fields have {size} bytes, the limit is {limit}; the largest is {largest}", path=f"$.{largest}")


def amended(trajectory: Trajectory, fields: Mapping[str, bytes]) -> Trajectory:
    """The trajectory with what was added to it in its envelope."""
    decoded = msgspec.json.decode(b"{" + b",".join(msgspec.json.encode(name) + b":" + value for name, value in fields.items()) + b"}", type=Amendment)
    changes = {name: value for name in FIELDS if (value := getattr(decoded, name)) is not UNSET}
    header: Header = msgspec.structs.replace(trajectory.header, **changes)
    return Trajectory(header, trajectory.document, defects=trajectory.defects, unknown=trajectory.unknown, key=trajectory.key)
