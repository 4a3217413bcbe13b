"""Groups lines into bodies: by count, by bytes, by time."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import zstandard

from inspector import frames
from inspector.client.advice import Asked
from inspector.client.lines import Line

_numbers = itertools.count(1)


class Batch(NamedTuple):
    """One body as it is posted and spooled: zstd frames of whole lines. Its number orders it among all of this process."""

    number: int
    body: bytes
    lines: int
    raw_bytes: int
    run: str | None = None  # whose mode the answer tells; None where lines differ or it is not known any more

    def texts(self) -> list[bytes]:
        """The lines, inflated again."""
        inflater = zstandard.ZstdDecompressor(max_window_size=frames.WINDOW).decompressobj(read_across_frames=True)
        return [line for line in inflater.decompress(self.body).split(b"\n") if line]


def batch_of(lines: Sequence[Line]) -> Batch:
    """Compress lines into one body."""
    texts = [line.text for line in lines]
    runs = {line.run for line in lines}
    return Batch(next_number(), b"".join(frames.pack(texts)), len(texts), sum(map(len, texts)) + len(texts), runs.pop() if len(runs) == 1 else None)


def next_number() -> int:
    """For a body that was compressed earlier, by another process."""
    return next(_numbers)


def halves(batch: Batch) -> list[Batch]:
    """The same lines in two bodies."""
    lines = [Line(text, Asked(id=""), batch.run) for text in batch.texts()]
    middle = len(lines) // 2
    return [batch_of(part) for part in (lines[:middle], lines[middle:]) if part]


class Batcher:
    """Collects lines until a batch is full or old enough."""

    def __init__(self, *, most_lines: int, most_bytes: int, most_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most_lines, self._most_bytes, self._most_s, self._clock = most_lines, most_bytes, most_s, clock
        self._lines: list[Line] = []
        self._bytes = 0
        self._due: float | None = None

    def add(self, line: Line) -> list[Batch]:
        """The batches that this line completes: the one before it where it would not fit, and its own when full."""
        done = self.close() if self._bytes + len(line.text) > self._most_bytes else []
        self._due = self._clock() + self._most_s if self._due is None else self._due
        self._lines.append(line)
        self._bytes += len(line.text) + 1
        full = len(self._lines) >= self._most_lines or self._bytes >= self._most_bytes
        return [*done, *(self.close() if full else [])]

    @property
    def wait_s(self) -> float | None:
        """Seconds until the open batch is due; None while there is none."""
        return None if self._due is None else max(0.0, self._due - self._clock())

    def close(self) -> list[Batch]:
        """The open batch, if there is one."""
        lines, self._lines, self._bytes, self._due = self._lines, [], 0, None
        return [batch_of(lines)] if lines else []
