"""Our own ids of trajectories: UUIDs of version 7 (RFC 9562), whose order is the order of receipt."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime
from uuid import UUID

_lock = threading.Lock()
_last = 0


def new_keys(count: int) -> list[UUID]:
    """Keys that rise within this process, also when the clock is set back; 12 bits of sub-millisecond time, 62 random ones."""
    global _last
    with _lock:
        now = max(time.time_ns() // 244, _last + 1)  # RFC 9562 §6.2, method 3: 1/4096 of a millisecond is about 244 ns
        _last = now + count - 1
    noise = os.urandom(8 * count)
    return [_key(now + at, int.from_bytes(noise[8 * at : 8 * at + 8], "big")) for at in range(count)]


def _key(ticks: int, noise: int) -> UUID:
    ms, fraction = divmod(ticks * 244, 1_000_000)
    return UUID(int=ms << 80 | 7 << 76 | (fraction * 4096 // 1_000_000) << 64 | 2 << 62 | noise >> 2)


def first_key(at: datetime) -> UUID:
    """Smaller than every key that was made at that time or later."""
    return UUID(int=max(0, int(at.timestamp() * 1000)) << 80)


def received_at(key: UUID) -> datetime:
    """When the line was received, to the millisecond, UTC."""
    return datetime.fromtimestamp((key.int >> 80) / 1000, UTC)
