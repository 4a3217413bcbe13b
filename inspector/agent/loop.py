"""The loop of a terminal agent: one command a turn, what it printed goes back, until it says that it is done or an allowance is spent."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from inspector.agent.endpoint import Endpoint, EndpointFailed, Message, Reply
from inspector.agent.history import History
from inspector.sandbox.protocol import Box, Broken, Ended, Refused, Result

DONE = "TASK_COMPLETE"
SEEN_CHARS = 8000  # of what a command printed that the model is shown, half from each end
SYSTEM = f"""You work in a terminal on a task that is given below. Each turn, think briefly, then give exactly one command block:

```bash
command
```

The command runs in a new shell in the task's working directory; files and background processes stay, variables do not. You see its exit code and
what it printed. A command is ended after {{action_s:g}} seconds. There is no one to ask. When the task is done, or nothing more can be done, say
{DONE} on a line of its own, without a command block."""
AGAIN = f"That held no command block. Give one ```bash block, or {DONE} on a line of its own."
_BLOCK = re.compile(r"```(?:bash|sh|shell|console)[ \t]*\r?\n(.*?)(?:\r?\n)?```", re.DOTALL)
_DONE = re.compile(rf"^[ \t*`]*{DONE}[ \t*`.]*$", re.MULTILINE)


class Ending(StrEnum):
    """How an episode ended. The last two say nothing about the task."""

    SUBMITTED = "submitted"
    TURNS = "turns"
    TIME = "time"
    TOKENS = "tokens"
    MUTE = "mute"  # several answers in a row without a command
    ENDPOINT = "endpoint"
    SANDBOX = "sandbox"


UNTOLD = frozenset({Ending.ENDPOINT, Ending.SANDBOX})


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one episode may use."""

    turns: int = 40
    wall_s: float = 1800.0
    action_s: float = 60.0
    tokens: int = 1_000_000  # of prompts and answers together, as the endpoint counts
    context_chars: int = 200_000
    mute: int = 3


@dataclass(slots=True)
class Episode:
    """What happened, step by step as ATIF writes it."""

    ending: Ending = Ending.TURNS
    reason: str = ""
    turns: int = 0
    tokens: int = 0
    summaries: int = 0
    steps: list[dict[str, Any]] = field(default_factory=list)

    def step(self, source: str, message: str, **more: Any) -> dict[str, Any]:
        """Note one."""
        made = {"step_id": len(self.steps) + 1, "source": source, "message": message, **more}
        self.steps.append(made)
        return made


class Agent:
    """A model with its way of working."""

    def __init__(self, endpoint: Endpoint, allowance: Allowance | None = None) -> None:
        self.endpoint = endpoint
        self.allowance = allowance or Allowance()

    def work(self, prompt: str, box: Box, *, seed: int | None = None) -> Episode:
        """Work on a task in a box that keeps what runs in it. Never raises for what model, endpoint or box do."""
        episode = Episode()
        try:
            self._turns(prompt, box, seed, episode)
        except EndpointFailed as error:
            episode.ending, episode.reason = Ending.ENDPOINT, str(error)
        except (Broken, Refused) as error:
            episode.ending, episode.reason = Ending.SANDBOX, str(error)
        return episode

    def answer(self, prompt: str, *, seed: int | None = None) -> tuple[Episode, str]:
        """One answer in words, for a task that has no place to work in."""
        episode = Episode()
        episode.step("user", prompt)
        try:
            reply = self.endpoint.ask([Message("user", prompt)], seed=seed)
        except EndpointFailed as error:
            episode.ending, episode.reason = Ending.ENDPOINT, str(error)
            return episode, ""
        self._note(episode, reply)
        episode.ending, episode.turns = Ending.SUBMITTED, 1
        return episode, reply.text

    def _turns(self, prompt: str, box: Box, seed: int | None, episode: Episode) -> None:
        ends = time.monotonic() + self.allowance.wall_s
        head = [Message("system", SYSTEM.format(action_s=self.allowance.action_s)), Message("user", prompt)]
        for message in head:
            episode.step(message.role, message.content)
        history = History(head, budget_chars=self.allowance.context_chars, ask=lambda messages: self._summary(messages, episode))
        mute = 0
        while (spent := self._spent(episode, ends, mute)) is None:
            reply = self.endpoint.ask(history.shown(), seed=seed)
            episode.turns, episode.summaries = episode.turns + 1, history.summaries
            history.add(Message("assistant", reply.text))
            step = self._note(episode, reply)
            command = _command(reply.text)
            if command is None and _DONE.search(reply.text):
                episode.ending = Ending.SUBMITTED
                return
            mute = mute + 1 if command is None else 0
            seen = AGAIN if command is None else self._act(box, command, step, min(self.allowance.action_s, max(0.1, ends - time.monotonic())))
            if command is None:
                episode.step("user", seen)
            history.add(Message("user", seen))
        episode.ending = spent

    def _spent(self, episode: Episode, ends: float, mute: int) -> Ending | None:
        """What is used up; None where nothing is."""
        limits = (
            (Ending.MUTE, mute >= self.allowance.mute),
            (Ending.TURNS, episode.turns >= self.allowance.turns),
            (Ending.TIME, time.monotonic() >= ends),
            (Ending.TOKENS, episode.tokens >= self.allowance.tokens),
        )
        return next((ending for ending, reached in limits if reached), None)

    def _note(self, episode: Episode, reply: Reply) -> dict[str, Any]:
        episode.tokens += reply.prompt_tokens + reply.completion_tokens
        metrics = {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens}
        return episode.step("agent", reply.text, model_name=self.endpoint.model, metrics=metrics)

    def _act(self, box: Box, command: str, step: dict[str, Any], timeout_s: float) -> str:
        """Run a command and note it with what came back."""
        result = box.run(["/bin/bash", "-c", command], timeout_s=timeout_s)
        seen = _told(result, timeout_s)
        call = f"call_{step['step_id']}"
        step["tool_calls"] = [{"tool_call_id": call, "function_name": "bash", "arguments": {"command": command}}]
        step["observation"] = {"results": [{"source_call_id": call, "content": seen}]}
        return seen

    def _summary(self, messages: Sequence[Message], episode: Episode) -> str:
        reply = self.endpoint.ask(messages)
        episode.tokens += reply.prompt_tokens + reply.completion_tokens
        return reply.text


def _command(text: str) -> str | None:
    """The command of the first block; an empty one is none."""
    found = _BLOCK.search(text)
    command = found[1].strip() if found else ""
    return command.replace("\0", "") or None


def _told(result: Result, timeout_s: float) -> str:
    """What a command did, as the model is told."""
    how = {
        Ended.EXITED: f"[exit code {result.exit_code}]",
        Ended.SIGNALLED: "[ended by a signal]",
        Ended.TIMED_OUT: f"[ended after {timeout_s:g} s: it took too long]",
        Ended.OUT_OF_MEMORY: "[ended: out of memory]",
        Ended.FLOODED: "[ended: it printed too much]",
    }[result.ended]
    printed = (result.stdout + (b"\n" if result.stdout and result.stderr else b"") + result.stderr).decode(errors="replace")
    if len(printed) > SEEN_CHARS:
        left_out = len(printed) - SEEN_CHARS
        printed = f"{printed[: SEEN_CHARS // 2]}\n[… {left_out} characters left out …]\n{printed[-SEEN_CHARS // 2 :]}"
    dropped = f"\n[{result.dropped_bytes} bytes more were printed]" if result.dropped_bytes else ""
    return f"{how}\n{printed}{dropped}"
