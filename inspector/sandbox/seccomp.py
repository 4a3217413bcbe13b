"""The system calls that a box may not make, as a filter program for the kernel."""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from inspector.sandbox.protocol import Refused


class Machine(NamedTuple):
    """What differs between two kinds of processors."""

    audit: int  # how the kernel names it to a filter
    clone: int
    clone3: int
    ioctl: int
    socket: int
    denied: frozenset[int]
    last: int = 469  # the last call that was looked at here: newer ones are not there


def _calls(numbers: str) -> frozenset[int]:
    return frozenset(map(int, numbers.split()))


# Clocks, keys, modules, mounts, handles that outlive folders, programs in the kernel, other people's memory policies.
X86_64 = Machine(
    audit=0xC000003E,
    clone=56,
    clone3=435,
    ioctl=16,
    socket=41,
    denied=_calls(
        "103 134 136 139 153 154 155 156 159 161 163 164 165 166 167 168 169 170 171 172 173 174 175 176 177 178 179 180 181 182 183 184 "
        "185 212 214 215 227 236 246 248 249 250 256 272 279 298 300 301 303 304 305 308 312 313 320 321 323 425 426 427 428 429 430 431 "
        "432 433 438 442 443 447 457 458 467"
    ),
)
AARCH64 = Machine(
    audit=0xC00000B7,
    clone=220,
    clone3=435,
    ioctl=29,
    socket=198,
    denied=_calls(
        "18 39 40 41 42 51 58 60 89 97 104 105 106 112 116 142 161 162 170 171 217 218 219 224 225 238 239 241 262 263 264 265 266 268 272 "
        "273 280 282 294 425 426 427 428 429 430 431 432 433 438 442 443 447 457 458 467"
    ),
)
MACHINES = {"x86_64": X86_64, "amd64": X86_64, "aarch64": AARCH64, "arm64": AARCH64}

FAMILIES = (1, 2, 10)  # unix and the two internets; vsock, netlink, packet, alg and the rest reach what no namespace holds
TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX type into the terminal that someone else reads
NAMESPACES = 0x7E020000  # CLONE_NEW*
X32 = 0x40000000

LOAD, JUMP_EQUAL, JUMP_GREATER, JUMP_AT_LEAST, JUMP_SET, RETURN = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06
ALLOW, KILL = 0x7FFF0000, 0x80000000
NUMBER, ARCHITECTURE, FIRST, SECOND = 0, 4, 16, 24  # offsets in seccomp_data; of an argument the low half, on little-endian machines

Step = tuple[int, int, int, int]  # code, jump if true, jump if false, value


@cache
def program(machine: str = platform.machine()) -> bytes:
    """The filter as bwrap reads it: struct sock_filter, one after the other. Raises Refused on processors that we do not know."""
    if machine.lower() not in MACHINES:
        raise Refused(f"no system call filter for {machine!r}")
    return b"".join(struct.pack("=HBBI", *step) for step in _steps(MACHINES[machine.lower()]))


def _steps(machine: Machine) -> Iterator[Step]:
    yield LOAD, 0, 0, ARCHITECTURE
    yield JUMP_EQUAL, 1, 0, machine.audit
    yield RETURN, 0, 0, KILL
    yield LOAD, 0, 0, NUMBER
    yield from _refuse(JUMP_AT_LEAST, X32, errno.EPERM)
    yield from _refuse(JUMP_GREATER, machine.last, errno.ENOSYS)
    yield from _refuse(JUMP_EQUAL, machine.clone3, errno.ENOSYS)  # its flags lie in memory, where no filter sees them; libc falls back to clone
    yield JUMP_EQUAL, 0, 4, machine.clone
    yield LOAD, 0, 0, FIRST
    yield JUMP_SET, 0, 1, NAMESPACES
    yield RETURN, 0, 0, _errno(errno.EPERM)
    yield RETURN, 0, 0, ALLOW
    yield JUMP_EQUAL, 0, 2 + 2 * len(TERMINAL_INPUT), machine.ioctl
    yield LOAD, 0, 0, SECOND
    for command in TERMINAL_INPUT:
        yield from _refuse(JUMP_EQUAL, command, errno.EPERM)
    yield RETURN, 0, 0, ALLOW
    yield JUMP_EQUAL, 0, 2 + 2 * len(FAMILIES), machine.socket
    yield LOAD, 0, 0, FIRST
    for family in FAMILIES:
        yield JUMP_EQUAL, 0, 1, family
        yield RETURN, 0, 0, ALLOW
    yield RETURN, 0, 0, _errno(errno.EAFNOSUPPORT)
    yield from _search(sorted(machine.denied))


def _search(numbers: list[int]) -> list[Step]:
    """Refuses these numbers, found by halving: the kernel walks the whole filter once for every call that there is when it takes it."""
    if len(numbers) == 1:
        return [(JUMP_EQUAL, 0, 1, numbers[0]), (RETURN, 0, 0, _errno(errno.EPERM)), (RETURN, 0, 0, ALLOW)]
    middle = len(numbers) // 2
    lower = _search(numbers[:middle])
    return [(JUMP_AT_LEAST, len(lower), 0, numbers[middle]), *lower, *_search(numbers[middle:])]


def _refuse(jump: int, value: int, number: int) -> Iterator[Step]:
    yield jump, 0, 1, value
    yield RETURN, 0, 0, _errno(number)


def _errno(number: int) -> int:
    return 0x00050000 | number
