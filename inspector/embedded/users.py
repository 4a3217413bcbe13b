"""Chooses whom a server runs as, and brings it its program and a place for its sockets."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from pathlib import Path

from inspector.embedded.child import User
from inspector.embedded.processes import CannotStart

SOCKETS = "ins-"  # begins the name of a folder for sockets
SOCKETS_IN = Path("/tmp")  # noqa: S108 - a socket's path has 107 bytes at most, and a data folder's may be longer; the folder itself is private


def server_user(folder: Path) -> User | None:
    """Whom Postgres runs as: us, or, since it refuses root, the owner of its folder, `nobody` when that is new."""
    if os.geteuid() != 0:
        return None
    owner = folder.stat() if folder.exists() else None
    return User(owner.st_uid, owner.st_gid) if owner and owner.st_uid else _nobody()


def require_named_user() -> None:
    """Raise CannotStart where Postgres would end with "user does not exist", as under a bare number in a container."""
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        raise CannotStart(f"Postgres needs a user with a name, and uid {os.geteuid()} has none; start as another user, or set INSPECTOR_DATABASE_URL") from None


def sockets_folder(user: User | None) -> Path:
    """A new private folder with a short path."""
    folder = Path(tempfile.mkdtemp(prefix=SOCKETS, dir=SOCKETS_IN))
    give(folder, user)
    return folder


def give(folder: Path, user: User | None) -> None:
    """Make a folder the user's own."""
    if user:
        os.chown(folder, user.uid, user.gid)


def within_reach(program: Path, user: User | None, sockets: Path) -> Path:
    """The program, a file or a folder of a package, or a copy when the user could not enter the folders above it, as below root's home."""
    if user is None or all(folder.stat().st_mode & 0o001 for folder in program.resolve().parents):
        return program
    copies = sockets / "programs"
    copy = copies / program.parent.name / program.name
    copy.parent.mkdir(parents=True)
    if program.is_dir():
        shutil.copytree(program, copy, symlinks=True, ignore=shutil.ignore_patterns("include"))
        _copy_libraries(program.parent, copies)
    else:
        shutil.copy2(program, copy)
    for folder in (copies, copy.parent, copy):
        folder.chmod(0o755)
    return copy


def _copy_libraries(package: Path, copies: Path) -> None:
    """A wheel keeps the shared libraries that it brings beside its package, and its programs look for them there."""
    libraries = package.with_name(package.name + ".libs")
    if libraries.exists():
        shutil.copytree(libraries, copies / libraries.name, symlinks=True)


def _nobody() -> User:
    try:
        found = pwd.getpwnam("nobody")
    except KeyError:
        raise CannotStart("Postgres refuses to run as root and there is no user 'nobody'; start as an ordinary user, or set INSPECTOR_DATABASE_URL") from None
    return User(found.pw_uid, found.pw_gid)
