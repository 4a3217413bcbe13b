"""The folder of one installation: private, used by one stack at a time, with a note of what runs on it."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from inspector.embedded.processes import CannotStart, Ladder, Process, identify

LOCK = "lock"  # also what tells our folder from another
LOCK_PATIENCE_S = 60.0  # for what a dead stack left to be ended


class Noted(msgspec.Struct, frozen=True):
    """A child as noted on disk: enough to end it from another process."""

    name: str
    process: Process
    ladder: Ladder


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What runs on a folder; `run.json`, for `inspector status`, for the keeper and for the next start."""

    boot: str  # of the machine: after a reboot the pids mean nothing
    stack: Process
    sockets: str
    api_url: str
    dashboard_url: str
    database_url: str
    redis_url: str
    children: tuple[Noted, ...] = ()  # in the order in which they are to be ended


class Folder:
    """Where an installation keeps everything; DATA in the messages."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._lock: int | None = None

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def note_file(self) -> Path:
        return self.path / "run.json"

    def prepare(self) -> None:
        """Make it, readable by its owner only; raises CannotStart when it is somebody else's or holds something else."""
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not (self.path / LOCK).exists() and any(self.path.iterdir()):
                raise CannotStart(f"{self.path} holds something else; name a new or empty folder for the service's data")
            self.path.chmod(0o700)
            self.logs.mkdir(exist_ok=True, mode=0o700)
        except OSError as error:
            raise CannotStart(f"{self.path} cannot be used as the data folder: {error}") from error

    def lock(self, say: Callable[[str], None] = lambda _: None) -> int:
        """Take the folder for this process, and return the descriptor that holds it; raises CannotStart naming the pid that has it.

        The lock ends with the last process that has the descriptor: a keeper still clearing up after a dead stack holds it, and is waited for.
        """
        self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        give_up_at = time.monotonic() + LOCK_PATIENCE_S
        waiting = False
        while not self._locked(self._lock):
            holder = msgspec.json.decode(os.pread(self._lock, 4096, 0) or b"null", type=Process | None)
            if holder is None or holder.alive or time.monotonic() > give_up_at:
                self.unlock()
                raise CannotStart(f"{self.path} is already served by process {holder.pid if holder else 'unknown'}; stop that one first, or use another folder")
            if not waiting:
                say(f"waiting until what process {holder.pid}, now dead, left on {self.path} is stopped")
                waiting = True
            time.sleep(0.1)
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, msgspec.json.encode(identify(os.getpid())), 0)
        return self._lock

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def write(self, note: Note) -> None:
        """Replace the note, whole or not at all."""
        write_secret(self.note_file, msgspec.json.format(msgspec.json.encode(note), indent=1))

    def read(self) -> Note | None:
        """The note of the last start; None when nothing was left running or the machine was started since. A damaged one is nobody's."""
        try:
            note = msgspec.json.decode(self.note_file.read_bytes(), type=Note)
        except (FileNotFoundError, msgspec.DecodeError):
            return None
        return note if note.boot == boot() else None

    def forget(self) -> None:
        self.note_file.unlink(missing_ok=True)

    @staticmethod
    def _locked(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def boot() -> str:
    """What changes with each start of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def write_secret(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, durably, whole or not at all."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
