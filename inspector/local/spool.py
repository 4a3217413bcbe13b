"""What the checks said of each trajectory, on disk until all were inspected: only then are honest means and groups known."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import Self

import msgspec

from inspector.local.survey import Group
from inspector.verdict import Finding

IN_MEMORY_BYTES = 16 << 20
_LENGTH = struct.Struct("<I")


class Inspected(msgspec.Struct, frozen=True, array_like=True):
    """A trajectory after its checks; of itself only what its judgement and its report need."""

    id: str
    source: str
    environment: str
    version: str
    task: str
    group: Group | None
    reward: float | None
    outcomes: bytes
    findings: tuple[Finding, ...]
    notes: dict[int, str]
    lost: int = 0  # things of the original that the importer could not carry


class Spool:
    """Written once, read as often as wanted; gone with its block."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115  (closed by __exit__)
        self._encode, self._decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(Inspected).decode

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()

    def add(self, inspected: Inspected) -> None:
        packed = self._encode(inspected)
        self._file.write(_LENGTH.pack(len(packed)) + packed)

    def __iter__(self) -> Iterator[Inspected]:
        self._file.seek(0)
        while head := self._file.read(_LENGTH.size):
            yield self._decode(self._file.read(_LENGTH.unpack(head)[0]))
