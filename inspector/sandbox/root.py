"""The root of a box: what of the machine it sees, read only, and the few files that we make for it."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

HOST_FILES = (
    "ld.so.cache",
    "ld.so.conf",
    "os-release",
    "debian_version",
    "mime.types",
    "protocols",
    "services",
    "ethertypes",
    "rpc",
    "inputrc",
    "shells",
    "magic",
)
HOST_FOLDERS = ("alternatives", "ssl/certs", "ld.so.conf.d", "terminfo", "fonts", "python3", "python3.11", "perl")
LINKED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")  # links into /usr, or folders of their own on old systems
EMPTY = ("proc", "dev", "sys", "run", "home", "srv", "mnt", "media", "opt", "usr", "var", "var/log", "var/lib", "var/cache", "root", "etc")
OPEN = ("tmp", "var/tmp")  # for everyone, sticky
MADE = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/hosts": "127.0.0.1 localhost box\n::1 localhost\n",
    "etc/hostname": "box\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    "etc/resolv.conf": "",
}
PYTHON, ENVIRONMENT = "/opt/python", "/opt/venv"  # where a Python of elsewhere is seen: the path of our own environment would tell who we are
SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Root:
    """The lowest layer and what is bound above it."""

    folder: Path
    binds: tuple[tuple[str, str], ...]  # of the machine -> in the box
    python: str  # the Python that runs us, as the box calls it

    def covers(self, path: str) -> bool:
        """Whether a path of the box lies in what is the machine's, not the box's."""
        return any(PurePosixPath(path).is_relative_to(place) for place in ("/proc", "/dev", *(inside for _, inside in self.binds)))

    @property
    def variables(self) -> dict[str, str]:
        """The environment of every command, before what it is given."""
        return {"PATH": f"{os.path.dirname(self.python)}:{SEARCHED}", "HOME": "/root", "USER": "root", "LANG": "C.UTF-8", "TZ": "UTC", "TERM": "dumb"}


@dataclass(frozen=True, slots=True)
class Python:
    """The Python that runs us, at places that say nothing of us: its installation, and its environment made anew around the same packages."""

    home: str  # the folder of the interpreter, in the box
    name: str
    binds: tuple[tuple[str, str], ...]
    virtual: bool

    @classmethod
    def ours(cls) -> Python:
        """As it is now."""
        name, base = f"python{sys.version_info[0]}.{sys.version_info[1]}", os.path.realpath(sys.base_prefix)
        shown = base == "/usr" or base.startswith("/usr/")
        place = base if shown or sysconfig.get_config_var("Py_ENABLE_SHARED") else PYTHON  # its library is looked for where it was installed
        binds = [] if shown else [(base, place)]
        if virtual := sys.prefix != sys.base_prefix:
            binds.append((sysconfig.get_path("purelib"), f"{ENVIRONMENT}/lib/{name}/site-packages"))
        return cls(f"{place}/bin", name, tuple(binds), virtual)

    @property
    def command(self) -> str:
        """How a box calls it."""
        return f"{ENVIRONMENT if self.virtual else os.path.dirname(self.home)}/bin/{self.name}"

    def prepare(self, folder: Path) -> None:
        """Make the places in the lowest layer."""
        for _, place in self.binds:
            (folder / place[1:]).mkdir(parents=True, exist_ok=True)
        if not self.virtual:
            return
        tools = folder / ENVIRONMENT[1:] / "bin"
        tools.mkdir()
        for alias in (self.name, "python3", "python"):
            (tools / alias).symlink_to(f"{self.home}/{self.name}")
        (tools.parent / "pyvenv.cfg").write_text(f"home = {self.home}\ninclude-system-site-packages = false\nversion = {sys.version.split()[0]}\n")


def build(folder: Path, owner: int, window: Callable[[str], Path]) -> Root:
    """Make the lowest layer in an empty folder, owned by the payload's user, without whom nothing could be copied up from it.

    `window` tells where the payload's user finds what is to be seen at a place of the box.
    """
    for name in (*EMPTY, *OPEN):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in OPEN:
        (folder / name).chmod(0o1777)
    for name, text in MADE.items():
        (folder / name).write_text(text)
    _copy_settings(Path("/etc"), folder / "etc")
    places = Python.ours()
    binds = [("/usr", "/usr"), *_linked(folder)]
    places.prepare(folder)
    _give(folder, owner)
    return Root(folder, tuple(binds + [(str(window(inside)), inside) for _, inside in places.binds]), places.command)


def _copy_settings(host: Path, to: Path) -> None:
    for name in HOST_FILES:
        if (host / name).is_file():
            shutil.copyfile(host / name, to / name)
    for name in HOST_FOLDERS:
        if (host / name).is_dir() and not (host / name).is_symlink():
            shutil.copytree(host / name, to / name, symlinks=True, ignore=_unreadable)


def _unreadable(folder: str, names: list[str]) -> set[str]:
    """What only root of the machine may read stays there."""
    return {name for name in names if not os.path.islink(path := os.path.join(folder, name)) and not os.stat(path).st_mode & 0o004}


def _linked(folder: Path) -> Iterator[tuple[str, str]]:
    for name in LINKED:
        host = Path("/", name)
        if host.is_symlink():
            (folder / name).symlink_to(os.readlink(host))
        elif host.is_dir():
            (folder / name).mkdir()
            yield str(host), str(host)


def _give(folder: Path, owner: int) -> None:
    for at, folders, files in os.walk(folder):
        for name in (".", *folders, *files):
            os.chown(os.path.join(at, name), owner, owner, follow_symlinks=False)
