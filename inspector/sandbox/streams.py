"""The pipes between a command in a box and us."""

from __future__ import annotations

import os
from contextlib import ExitStack

from inspector.sandbox.process import Stream, Talk
from inspector.sandbox.protocol import Limits


def converse(stack: ExitStack, stdin: bytes, limits: Limits, user: int) -> tuple[Talk, dict[int, int]]:
    """A conversation, and the descriptors of its other side, which the caller closes once the child has them."""
    streams: dict[int, int] = {}
    stack.callback(let_go, streams)
    outputs = []
    for number in (1, 2):
        reading, streams[number] = pipe_for(user)
        stack.callback(os.close, reading)
        os.set_blocking(reading, False)
        outputs.append(reading)
    into = None
    if stdin:
        streams[0], into = pipe_for(user)
        os.set_blocking(into, False)
    else:
        streams[0] = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    talk = Talk(stdin, into, {reading: Stream(limits.output_bytes) for reading in outputs}, limits.flood_bytes)
    stack.callback(talk.hang_up)
    return talk, streams


def pipe_for(user: int) -> tuple[int, int]:
    """A pipe that this user may open by its name too, as /dev/stdout: to be read, to be written."""
    reading, writing = os.pipe()
    os.fchown(writing, user, user)
    return reading, writing


def pipe_for_later(stack: ExitStack, user: int) -> tuple[int, int]:
    """A pipe into which nobody can write yet, so that no fork of ours can keep it open: its end for the child, and ours for `write_to`."""
    reading, writing = pipe_for(user)
    os.close(writing)
    ours = os.dup(reading)
    stack.callback(os.close, ours)
    return reading, ours


def write_to(ours: int) -> int:
    """A descriptor to write to a pipe of which we hold the other end."""
    return os.open(f"/proc/self/fd/{ours}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def let_go(streams: dict[int, int]) -> None:
    """Close the other side of a conversation."""
    while streams:
        os.close(streams.popitem()[1])


def complaint(talk: Talk) -> str:
    """What bwrap said of itself."""
    return bytes(talk.stderr.kept).decode(errors="replace").strip()[:2000]
