"""Keeps emptied control groups for the next box: to make and remove one costs as much as a process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from inspector.sandbox.cgroups import Cgroups, Group
from inspector.sandbox.protocol import Limits

KEPT = 16
IDLE_BYTES = 4 << 20  # of memory still counted, above which a group tells too much of its last box
UNBURIED = 16  # dead of earlier boxes that a group may hold: a command is forgiven them, and may start so many more once they are buried


@dataclass(slots=True)
class GroupPool:
    """Groups of one owner, any thread's."""

    cgroups: Cgroups
    name: Callable[[], str]
    free: deque[Group] = field(default_factory=deque)

    def take(self, limits: Limits) -> Group:
        """A group under these limits, with nobody in it. Raises Broken."""
        if (group := self._emptied()) is None:
            return self.cgroups.make(self.name(), limits)
        try:
            if group.limits != limits:
                group.limit(limits)
        except OSError:  # the kernel may hold more than the new limit
            group.remove()
            return self.cgroups.make(self.name(), limits)
        return group

    def _emptied(self) -> Group | None:
        """The group that waits longest; none if too many of its dead are not buried yet, for they count as processes."""
        try:
            group = self.free.popleft()
        except IndexError:
            return None
        if group.counted() <= UNBURIED:
            return group
        self.free.append(group)
        return None

    def give(self, group: Group) -> None:
        """Take a group back, and end who is still in it. Raises Broken."""
        if len(self.free) < KEPT and group.is_empty() and group.memory_bytes() < IDLE_BYTES:
            self.free.append(group)
        else:
            group.remove()

    def close(self) -> None:
        """Remove them all. Raises Broken."""
        while self.free:
            self.free.pop().remove()
