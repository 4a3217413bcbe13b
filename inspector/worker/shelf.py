"""The package that a sandbox worker works on: fetched, unpacked and opened once, and kept while work on it comes."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from inspector import egress as egressing
from inspector.assignments import Assignment, PackageOfWork, handed_over
from inspector.egress import Egress
from inspector.environments.benchmark_rows import BenchmarkRows
from inspector.environments.gold_actions import GoldActions
from inspector.environments.harbor.face import HarborEnvironment
from inspector.environments.http_verifier import HttpVerifier
from inspector.environments.opening import open_environments
from inspector.environments.protocol import Environment, Unreadable
from inspector.environments.reasoning_gym import open_reasoning_gym
from inspector.environments.reward_function import RewardFunction
from inspector.environments.rows import read_rows
from inspector.environments.verifiers_env import VerifiersEnvironment
from inspector.packing import unpack
from inspector.sandbox.protocol import Backend
from inspector.sandbox.stage import owner_name
from inspector.showable import shell_word

Fetch = Callable[[Assignment, IO[bytes]], None]
KINDS = {"harbor": HarborEnvironment, "rows": BenchmarkRows, "function": RewardFunction, "gold_actions": GoldActions}


class Shelf:
    """Holds one package at a time, in a folder of this process."""

    def __init__(self, room: Path, backend: Backend, fetch: Fetch, egress: Egress) -> None:
        self._room, self._backend, self._fetch, self._egress = room, backend, fetch, egress
        self._held: tuple[PackageOfWork, Environment] | None = None

    def environment(self, assignment: Assignment) -> Environment:
        """What an assignment is about. Raises Unreadable, and what fetching it raises."""
        if self._held is None or self._held[0] != assignment.package:
            self._held = None
            self._held = assignment.package, self._opened(assignment)
        return self._held[1]

    @property
    def folder(self) -> Path:
        """Of this process; there once something was opened."""
        return self._room / owner_name()

    def _opened(self, assignment: Assignment) -> Environment:
        folder = self._cleared()
        files = folder / "files"
        files.mkdir()
        if assignment.package.sha256 is not None:
            self._unpack(assignment, folder / "package.tar", files)
        return _open(files, assignment.package, self._backend, self._egress)

    def _unpack(self, assignment: Assignment, tar: Path, files: Path) -> None:
        with tar.open("w+b") as file:
            self._fetch(assignment, file)
            file.seek(0)
            if (found := hashlib.file_digest(file, "sha256").hexdigest()) != assignment.package.sha256:
                raise Unreadable(f"the package has the sha256 {found}, not {assignment.package.sha256}")
            file.seek(0)
            unpack(file, files)
        tar.unlink()

    def _cleared(self) -> Path:
        """An empty folder of ours, what processes that have died left taken away."""
        self._room.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in self._room.iterdir():
            if left.name == owner_name() or _is_dead(left.name):
                shutil.rmtree(left)
        folder = self._room / owner_name()
        folder.mkdir(mode=0o700)
        return folder


def _is_dead(name: str) -> bool:
    """Whether a process of our own container made a folder of this name, and lives no more."""
    here, _, rest = name.partition("-")
    pid = rest.partition("-")[0]
    return here == owner_name().partition("-")[0] and pid.isdigit() and owner_name(int(pid)) != name


def _open(files: Path, package: PackageOfWork, backend: Backend, egress: Egress) -> Environment:
    match package.face, package.entry or _only(files):
        case "reasoning_gym", name:
            found: Sequence[Environment] = open_reasoning_gym(name, backend)
        case "verifiers", name:
            found = [VerifiersEnvironment(name, backend, folder=files)]
        case "http_verifier", address:
            found = [_served(address, files, package, egress)]
        case _, entry:
            return _inside_package(files, entry, package, backend)
    if len(found) != 1:
        raise Unreadable(f"{package.entry!r:.200} names {len(found)} environments: register each as a version of its own")
    return found[0]


def _served(address: str, files: Path, package: PackageOfWork, egress: Egress) -> HttpVerifier:
    try:
        egress.admit(address)
    except egressing.Refused as error:
        raise Unreadable(f"this verifier is not called: {error}") from error
    return HttpVerifier(address, read_rows(_inside(files, package.dataset or _only(files))), egress=egress)


def _inside_package(files: Path, entry: str, package: PackageOfWork, backend: Backend) -> Environment:
    found = open_environments(str(_inside(files, entry)), dataset=_inside(files, package.dataset) if package.dataset else None, backend=backend)
    if len(found) != 1:
        raise Unreadable(f"{entry!r:.200} holds {len(found)} environments: register each as a version of its own")
    if package.face != "auto" and not isinstance(found[0], KINDS[package.face]):
        raise Unreadable(f"{entry!r:.200} was registered as {package.face}, and reads as {type(found[0]).__name__}")
    return found[0]


def _only(files: Path) -> str:
    names = sorted(os.listdir(files))
    if len(names) != 1:
        raise Unreadable(f"the package holds {len(names)} things beside each other: say by `entry` which is the environment")
    return names[0]


def _inside(files: Path, name: str) -> Path:
    """A path of the package; a reward function is named behind a colon."""
    path = files / name
    if not path.resolve().is_relative_to(files.resolve()):
        raise Unreadable(f"{name!r:.200} leaves the package")
    return path


def command(package: PackageOfWork) -> str:
    """How the same is asked for on a command line, beside the folder that was packed."""
    words = ["inspector", "probe", handed_over(package.face, package.entry), *(["--dataset", package.dataset] if package.dataset else [])]
    return " ".join(map(shell_word, words))
