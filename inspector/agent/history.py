"""What the model is shown of its own past: all of it while it fits, then what was seen long ago in short, then a summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from inspector.agent.endpoint import EndpointFailed, Message

RECENT = 8  # messages that are always shown whole
KEPT = 400  # characters at each end of an old observation
SUMMARY_CHARS = 6000
SUMMARISE = (
    "Summarise the work above for yourself, since it will be taken away: what the task asks, what you found out, which files you changed and how, "
    "what failed and why, and what is left to do. At most 400 words."
)


class History:
    """The conversation of one episode. `ask` gives the model's answer to some messages."""

    def __init__(self, head: Sequence[Message], *, budget_chars: int, ask: Callable[[Sequence[Message]], str]) -> None:
        self._head = list(head)  # the system's words and the task's: always shown
        self._rest: list[Message] = []
        self._budget = budget_chars
        self._ask = ask
        self.summaries = 0
        self.pruned = 0

    def add(self, message: Message) -> None:
        """What was said or seen last."""
        self._rest.append(message)

    def shown(self) -> list[Message]:
        """Never more than the budget, unless the newest messages alone are."""
        if self._size() > self._budget:
            self._prune()
        if self._size() > self._budget:
            self._summarise()
        return [*self._head, *self._rest]

    def _size(self) -> int:
        return sum(len(message.content) for message in (*self._head, *self._rest))

    def _prune(self) -> None:
        for at, message in enumerate(self._rest[:-RECENT]):
            if message.role == "user" and len(message.content) > 3 * KEPT:
                left_out = len(message.content) - 2 * KEPT
                short = f"{message.content[:KEPT]}\n[… {left_out} characters left out …]\n{message.content[-KEPT:]}"
                self._rest[at] = Message("user", short)
                self.pruned += 1

    def _summarise(self) -> None:
        old, self._rest = self._rest[:-RECENT], self._rest[-RECENT:]
        if not old:
            return
        while self._rest and self._rest[0].role == "user":  # an observation whose action goes into the summary goes with it
            old.append(self._rest.pop(0))
        try:
            told = self._ask([*self._head, *self._fitting(old), Message("user", SUMMARISE)])[:SUMMARY_CHARS]
        except EndpointFailed:
            told = "(no summary could be made)"
        self.summaries += 1
        self._rest.insert(0, Message("user", f"Your work so far, {len(old)} messages, in short:\n{told}"))

    def _fitting(self, old: Sequence[Message]) -> list[Message]:
        """The newest of them that fit into the budget."""
        size = sum(len(message.content) for message in self._head) + len(SUMMARISE)
        kept: list[Message] = []
        for message in reversed(old):
            size += len(message.content)
            if size > self._budget:
                break
            kept.append(message)
        return kept[::-1]
