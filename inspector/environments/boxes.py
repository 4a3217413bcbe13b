"""Runs a verifier's part in a fresh box, and says as a grade why there is none."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import NamedTuple

from inspector.environments.protocol import AS_DECLARED, Conditions, Grade, Trouble
from inspector.sandbox.protocol import Backend, Box, Broken, Ended, Layer, Limits, Network, Refused, Result

EVIDENCE_BYTES = 4000
OUR_MEMORY = "which is this program's limit and not the task's"
NEARLY = 0.9  # of a limit on memory: a process that is killed below it was killed for want of the machine's own


class Reply(NamedTuple):
    """What a runner answered; None where it ended without an answer."""

    answer: bytes | None
    result: Result


def variables(conditions: Conditions, own: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """What fixes a verifier's surroundings. What the task sets itself (`own`) stands, unless a condition was changed on purpose."""
    plain, asked = _variables(AS_DECLARED), _variables(conditions)
    return {**plain, **own, **{name: value for name, value in asked.items() if value != plain[name]}}


def _variables(conditions: Conditions) -> dict[str, str]:
    return {
        "PYTHONHASHSEED": str(conditions.seed),
        "TZ": conditions.timezone,
        "LANG": conditions.locale,
        "LC_ALL": conditions.locale,
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def network_of(conditions: Conditions, declared: Network = Network.OFF) -> Network:
    """What a box of this grade may reach."""
    if conditions.network is None:
        return declared
    return Network.ON if conditions.network else Network.OFF


@cache
def source(name: str) -> str:
    """The text of a runner, a script that is only ever run inside a box."""
    return (files("inspector.environments") / "runners" / f"{name}.py").read_text()


def python(text: str, *arguments: str) -> list[str]:
    """A command that runs a text by the box's own Python, without the folder it is started in on its path."""
    return ["python3", "-s", "-P", "-c", text, *arguments]


def ask(box: Box, runner: str, request: bytes, *, timeout_s: float, environment: Mapping[str, str], cwd: str | None = None) -> Reply:
    """Run a runner on a request. Its answer is known by a word that only the runner was told. Raises Broken and Refused."""
    word = secrets.token_hex(16).encode()
    result = box.run(python(source(runner)), timeout_s=timeout_s, stdin=word + b"\n" + request, environment=environment, cwd=cwd)
    printed, found, answer = result.stdout.partition(word)
    return Reply(answer if found else None, replace(result, stdout=printed))


def fresh(backend: Backend, layers: Sequence[Layer] = (), *, limits: Limits, network: Network = Network.OFF, cwd: str = "/") -> Box:
    """A box for one command of a verifier. Raises Refused and Broken."""
    if network not in backend.capabilities.network:
        raise Refused(f"this backend gives no box with its network {network.value}")
    return backend.create(layers, limits=limits, network=network, cwd=cwd)


def troubled(error: Refused | Broken) -> Grade:
    """No grade, by no fault of task or submission."""
    return Grade(None, trouble=Trouble.REFUSED if isinstance(error, Refused) else Trouble.BROKEN, evidence=str(error)[:EVIDENCE_BYTES])


def ended(result: Result, timeout_s: float, memory_bytes: int | None = None, *, declared: bool = False) -> Grade | None:
    """The grade where a verifier was stopped from outside; None where it came to its own end.

    With `memory_bytes`, the limit within which a submission has to keep, one that reached it has failed; `declared` by the task, or our own choice.
    """
    if result.ended is Ended.TIMED_OUT:
        return measured(Grade(None, trouble=Trouble.TIMED_OUT, evidence=f"timeout: no end within {timeout_s:g} s\n{tail(result)}"), result)
    if result.ended is Ended.OUT_OF_MEMORY:
        return measured(_out_of_memory(result, memory_bytes, declared), result)
    return None


def _out_of_memory(result: Result, memory_bytes: int | None, declared: bool) -> Grade:
    if memory_bytes is None or result.peak_bytes is None or result.peak_bytes < NEARLY * memory_bytes:
        return Grade(None, trouble=Trouble.REFUSED, evidence="out of the memory that this sandbox gives")
    whose = "which is the task's own limit" if declared else OUR_MEMORY
    return Grade(0.0, evidence=f"{tail(result)}\nout of memory: it used {memory_bytes >> 20} MiB, {whose}".strip())


def finite(value: float) -> float | None:
    """A number as a float; None where it is infinite, none at all, or more than a float holds."""
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def measured(grade: Grade, *results: Result) -> Grade:
    """With what it cost."""
    return replace(grade, cpu_s=grade.cpu_s + sum(each.cpu_s for each in results), wall_s=grade.wall_s + sum(each.wall_s for each in results))


def tail(result: Result, size: int = EVIDENCE_BYTES) -> str:
    """The end of what a command printed, errors last."""
    return (result.stdout + result.stderr)[-size:].decode(errors="replace")
