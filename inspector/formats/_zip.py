"""Reads members of a zip archive in memory, within limits, including those compressed with zstd; nothing is written to disk."""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path
from types import TracebackType

import zstandard

from inspector.errors import UnreadableInput
from inspector.formats._files import INFLATED_BYTES, INFLATED_RATIO, ZSTD_WINDOW

MEMBER_BYTES = 256 << 20
MEMBERS = 100_000
_ZSTD = (93, 20)  # the method's number, and the one it had before
_LOCAL = struct.Struct("<4s22xHH")  # signature, lengths of name and extra field
_ENCRYPTED = 0x1


class BadMember(ValueError):
    """A member that is damaged, too large or compressed in a way that we do not read."""


class Archive:
    """A zip file whose members are read one at a time; all together never inflate to more than a limit."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError, struct.error) as error:
            raise UnreadableInput(f"{path}: not a readable zip archive: {error}") from error
        self._left = max(INFLATED_BYTES, INFLATED_RATIO * path.stat().st_size)
        self._members = {member.filename: member for member in self._zip.infolist()[:MEMBERS]}

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._zip.close()

    @property
    def names(self) -> list[str]:
        """Names of the members, in the order of the archive."""
        return list(self._members)

    def read(self, name: str) -> bytes:
        """One member, inflated. Raises BadMember."""
        member = self._members[name]
        if member.flag_bits & _ENCRYPTED:
            raise BadMember("is encrypted")
        if member.file_size > MEMBER_BYTES or member.file_size > self._left:
            raise BadMember(f"says that it inflates to {member.file_size} bytes, more than is read")
        raw = self._inflate(member)
        if len(raw) != member.file_size or zlib.crc32(raw) != member.CRC:
            raise BadMember("is damaged: its size or checksum is not what the archive says")
        self._left -= len(raw)
        return raw

    def _inflate(self, member: zipfile.ZipInfo) -> bytes:
        packed = self._packed(member)
        try:
            if member.compress_type == zipfile.ZIP_STORED:
                return packed
            if member.compress_type == zipfile.ZIP_DEFLATED:
                return zlib.decompressobj(-15).decompress(packed, member.file_size + 1)
            if member.compress_type in _ZSTD:
                with zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW).stream_reader(packed, read_across_frames=True) as stream:
                    return stream.read(member.file_size + 1)
        except (zlib.error, zstandard.ZstdError) as error:
            raise BadMember(f"is damaged: {error}") from error
        raise BadMember(f"is compressed with method {member.compress_type}, which is not read")

    def _packed(self, member: zipfile.ZipInfo) -> bytes:
        """The member's bytes as they lie in the file."""
        with self.path.open("rb") as file:
            file.seek(member.header_offset)
            header = file.read(_LOCAL.size)
            if len(header) < _LOCAL.size:
                raise BadMember("lies beyond the end of the file")
            signature, name, extra = _LOCAL.unpack(header)
            if signature != b"PK\x03\x04":
                raise BadMember("has no header where the archive says")
            file.seek(name + extra, 1)
            return file.read(member.compress_size)
