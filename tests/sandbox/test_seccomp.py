"""The filter, read as the kernel reads it, on processors that this machine does not have too."""

from __future__ import annotations

import errno
import struct

import pytest

from inspector.sandbox import seccomp
from inspector.sandbox.protocol import Refused

MACHINES = {"x86_64": seccomp.X86_64, "aarch64": seccomp.AARCH64}
ALLOWED, KILLED = "allowed", "killed"


def verdict(machine, number, arguments=(), audit=None):
    """What the filter says of a call."""
    audit = MACHINES[machine].audit if audit is None else audit
    seen = struct.pack("=IIQ6Q", number, audit, 0, *(*arguments, *(0,) * (6 - len(arguments))))
    steps = list(struct.iter_unpack("=HBBI", seccomp.program(machine)))
    at, value = 0, 0
    while True:
        code, yes, no, operand = steps[at]
        at += 1
        if code == seccomp.LOAD:
            value = struct.unpack_from("=I", seen, operand)[0]
        elif code == seccomp.RETURN:
            return {seccomp.ALLOW: ALLOWED, seccomp.KILL: KILLED}.get(operand, operand & 0xFFFF)
        else:
            holds = {
                seccomp.JUMP_EQUAL: value == operand,
                seccomp.JUMP_GREATER: value > operand,
                seccomp.JUMP_AT_LEAST: value >= operand,
                seccomp.JUMP_SET: bool(value & operand),
            }[code]
            at += yes if holds else no


# read, openat, mmap, execve, futex, getrandom, rename, pidfd_open, landlock_create_ruleset, futex_waitv
ORDINARY = {"x86_64": (0, 257, 9, 59, 202, 318, 316, 434, 444, 449), "aarch64": (63, 56, 222, 221, 98, 278, 276, 434, 444, 449)}
# mount, unshare, setns, bpf, keyctl, perf_event_open, kexec_load, reboot, init_module, name_to_handle_at, userfaultfd, io_uring_enter
REFUSED = {"x86_64": (165, 272, 308, 321, 250, 298, 246, 169, 175, 303, 323, 426), "aarch64": (40, 97, 268, 280, 219, 241, 104, 142, 105, 264, 282, 426)}


@pytest.mark.parametrize("machine", MACHINES)
def test_ordinary_calls_pass_and_the_others_do_not(machine):
    assert {verdict(machine, number) for number in ORDINARY[machine]} == {ALLOWED}
    assert {verdict(machine, number) for number in REFUSED[machine]} == {errno.EPERM}


@pytest.mark.parametrize("machine", MACHINES)
def test_arguments_are_looked_at_as_the_kernel_takes_them(machine):
    calls = MACHINES[machine]
    assert verdict(machine, calls.clone, (0x1200011,)) == ALLOWED  # as libc forks
    assert verdict(machine, calls.clone, (0x3D0F00,)) == ALLOWED  # as libc starts threads
    assert verdict(machine, calls.clone, (0x10000011,)) == errno.EPERM
    assert verdict(machine, calls.clone3) == errno.ENOSYS
    assert verdict(machine, calls.ioctl, (0, 0x5413)) == ALLOWED
    assert verdict(machine, calls.ioctl, (0, 0x5412)) == errno.EPERM
    assert verdict(machine, calls.ioctl, (0, 0xDEAD00005412)) == errno.EPERM  # the kernel drops the upper half, and so do we
    assert [verdict(machine, calls.socket, (family,)) for family in (1, 2, 10)] == [ALLOWED] * 3
    assert {verdict(machine, calls.socket, (family,)) for family in (0, 16, 17, 38, 40)} == {errno.EAFNOSUPPORT}


@pytest.mark.parametrize("machine", MACHINES)
def test_foreign_doors_and_the_future_are_shut(machine):
    assert verdict(machine, 0, audit=0x40000003) == KILLED
    assert verdict(machine, 10_000) == errno.ENOSYS
    assert verdict(machine, 0x40000000 + 1) == errno.EPERM


def test_a_processor_that_nobody_thought_of_is_refused():
    with pytest.raises(Refused, match="riscv64"):
        seccomp.program("riscv64")


@pytest.mark.parametrize("machine", MACHINES)
def test_every_number_is_answered_as_it_is_listed(machine):
    calls = MACHINES[machine]
    special = {calls.clone, calls.clone3, calls.ioctl, calls.socket}
    refused = {number for number in range(calls.last + 1) if number not in special and verdict(machine, number) == errno.EPERM}
    assert refused == calls.denied
    assert {verdict(machine, number) for number in range(calls.last + 1) if number not in special | calls.denied} == {ALLOWED}
