"""What the checks of a batch share: each transcript read once, for its text and for the lengths of its parts."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from inspector.check import Batch, Trajectory
from inspector.signatures.transcript import DID, KINDS, SEEN, transcript
from inspector.trajectory import Source


class Transcripts(NamedTuple):
    """Of the trajectories of a batch, or of their steps one after another."""

    texts: list[bytes]  # what is said, done and seen, joined by line feeds, as UTF-8
    agent: np.ndarray  # of each step: whether it is the agent's
    calls: np.ndarray  # of each step
    lengths: np.ndarray  # of each step: message, reasoning, arguments, observation, in characters
    borders: np.ndarray  # where the steps of each trajectory begin, and the end; one without steps counts as one silent step
    commands: list[int]  # distinct ones


_walked: WeakKeyDictionary[Batch, Transcripts] = WeakKeyDictionary()


def transcripts(batch: Batch) -> Transcripts:
    """Of this batch; walked at the first question."""
    found = _walked.get(batch)
    if found is None:
        found = _walked[batch] = _walk(batch)
    return found


def _walk(batch: Batch) -> Transcripts:
    texts: list[bytes] = []
    steps: list[tuple[bool, int]] = []
    sizes: list[int] = []
    marks: list[int] = []
    of_each: list[tuple[int, int, int]] = []  # steps, texts, distinct commands
    for trajectory in batch:
        read = transcript(trajectory)
        texts.append(read.data)
        sizes += read.sizes
        marks += read.marks
        before = len(steps)
        steps += _steps(trajectory)
        distinct = {text for text, mark in zip(read.texts, read.marks, strict=True) if mark % KINDS == DID}
        of_each.append((len(steps) - before, len(read.texts), len(distinct)))
    counts, pieces, commands = zip(*of_each, strict=True)
    borders = np.cumsum([0, *counts])
    places = np.array(marks, np.int64) + np.repeat(borders[:-1] * KINDS, pieces)
    lengths = np.bincount(places, weights=sizes, minlength=len(steps) * KINDS).reshape(-1, KINDS)
    agent, calls = np.array(steps, np.float64).T
    return Transcripts(texts, agent, calls, np.delete(lengths[:, : SEEN + 1], 2, axis=1), borders, list(commands))


def _steps(trajectory: Trajectory) -> list[tuple[bool, int]]:
    agent = Source.AGENT
    return [(step.source is agent, len(step.tool_calls) if step.tool_calls else 0) for step in trajectory.document.steps] or [(False, 0)]
