"""What a start asks of the rest of the service: the schema, the first keys, and the address where a person signs in."""

from __future__ import annotations

import importlib
from pathlib import Path

import msgspec

from inspector.embedded.folder import write_secret

KEYS_FILE = "keys.json"


def migrate(database_url: str) -> None:
    """Bring the database to the schema of this version."""
    importlib.import_module("inspector.store.migrate").upgrade(database_url)


def first_keys(database_url: str, data: Path) -> dict[str, str]:
    """The keys of a new installation, made once and kept in DATA/keys.json for its owner only; name to key.

    The file is written before the commit: a crash between the two makes new keys at the next start, and loses none that count.
    """
    session, keys = importlib.import_module("inspector.store.session"), importlib.import_module("inspector.store.keys")
    engine = session.connect(database_url, pool_size=1)
    try:
        with session.transaction(engine) as opened:
            made = keys.ensure_installation(opened)  # None when the database has keys already: a key is shown once
            if made is not None:
                write_secret(data / KEYS_FILE, msgspec.json.format(msgspec.json.encode(made), indent=1))
    finally:
        engine.dispose()
    return read_keys(data)


def read_keys(data: Path) -> dict[str, str]:
    """The keys that were made on this folder; none when its database got its keys elsewhere."""
    file = data / KEYS_FILE
    return msgspec.json.decode(file.read_bytes(), type=dict[str, str]) if file.exists() else {}


def login_address(dashboard_url: str) -> str:
    """Where a person signs in."""
    return dashboard_url
