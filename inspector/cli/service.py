"""Finds the running service and a key for it: from options, from the environment, or from the folder of a local `up`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

if TYPE_CHECKING:
    from inspector.client import Api

KEYS_FILE = "keys.json"  # of `up`: role to key
NOTE_FILE = "run.json"  # of `up`: where it serves

Url = Annotated[str, typer.Option("--url", envvar="INSPECTOR_URL", help="Of the service; else that of the local `up`.")]
Key = Annotated[str, typer.Option("--key", envvar="INSPECTOR_KEY", help="API key; else one of the local `up`. Rather in the environment than here.")]
Data = Annotated[Path | None, typer.Option("--data", metavar="DIR", help="The folder of the local `up`.")]


class _Note(msgspec.Struct):
    api_url: str


@dataclass(frozen=True)
class Local:
    """The folder of an `up` on this machine."""

    path: Path

    @property
    def url(self) -> str | None:
        """Where it serves; None while it does not."""
        note = self._read(NOTE_FILE, _Note)
        return note.api_url if note else None

    def key(self, role: str) -> str | None:
        """The key of that role."""
        keys: dict[str, str] = self._read(KEYS_FILE, dict[str, str]) or {}
        return keys.get(role)

    def _read(self, name: str, kind: Any) -> Any:
        from inspector.client import BadOption

        try:
            return msgspec.json.decode((self.path / name).read_bytes(), type=kind)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            raise BadOption(f"{self.path / name} cannot be read: {error}") from error


def data_folder(chosen: Path | None) -> Path:
    """Where `up` keeps everything, unless told otherwise."""
    if chosen is not None:
        return chosen
    home = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(home).expanduser() / "inspector"


@contextmanager
def connected(url: str, key: str, data: Path | None, *, role: str) -> Iterator[Api]:
    """Plain calls of the service, with a key of that role where none is given. Raises BadOption that says what is missing."""
    from inspector.client import Api, BadOption

    local = Local(data_folder(data))
    at, using = url or local.url, key or local.key(role)
    if not at:
        raise BadOption(f"no service: give --url or INSPECTOR_URL (no `inspector up` serves {local.path} now)")
    if not using:
        raise BadOption(f"no key: give INSPECTOR_KEY or --key ({local.path / KEYS_FILE} has none of role {role})")
    if not using.isascii() or not using.isprintable():
        raise BadOption("the key has characters that no key has")
    with Api(at, using) as api:
        yield api
