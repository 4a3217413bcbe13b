"""What a start asks of the rest of the service: the schema, the first keys, and the address where a person signs in."""

from __future__ import annotations

import importlib
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from inspector.embedded.folder import write_secret

KEYS_FILE = "keys.json"
WEBHOOK_FILE = "webhook.key"
LOGIN_FOR = timedelta(hours=1)


def migrate(database_url: str) -> None:
    """Bring the database to the schema of this version."""
    importlib.import_module("inspector.store.migrate").upgrade(database_url)


def first_keys(database_url: str, data: Path, *, prober_key: str = "") -> dict[str, str]:
    """The keys of a new installation, made once and kept in DATA/keys.json for its owner only; name to key.

    A `prober_key` that the operator chose is made one of the installation's, also later.

    The file is written before the commit: a crash between the two makes new keys at the next start, and loses none that count.
    """
    session, installation = importlib.import_module("inspector.store.session"), importlib.import_module("inspector.store.installation")
    engine = session.connect(database_url, pool_size=1)
    try:
        with session.transaction(engine) as opened:
            made = installation.ensure_installation(opened)  # None when the database has keys already: a key is shown once
            if made is not None:
                write_secret(data / KEYS_FILE, msgspec.json.format(msgspec.json.encode(made), indent=1))
            if prober_key:
                installation.ensure_prober(opened, prober_key)
    finally:
        engine.dispose()
    return read_keys(data)


def webhook_key(data: Path) -> str:
    """What the secrets of webhooks are made of, made once and kept in DATA/webhook.key for its owner only."""
    file = data / WEBHOOK_FILE
    if not file.exists():
        write_secret(file, secrets.token_urlsafe(32).encode())
    return file.read_text().strip()


def read_keys(data: Path) -> dict[str, str]:
    """The keys that were made on this folder; none when its database got its keys elsewhere."""
    file = data / KEYS_FILE
    return msgspec.json.decode(file.read_bytes(), type=dict[str, str]) if file.exists() else {}


def login_address(dashboard_url: str, database_url: str, data: Path) -> str:
    """Where a person signs in, once and within the hour, with the first owner's authority; plain where that key is not kept here."""
    owner = read_keys(data).get("owner")
    if owner is None:
        return dashboard_url
    session, projects = importlib.import_module("inspector.store.session"), importlib.import_module("inspector.store.projects")
    engine = session.connect(database_url, pool_size=1)
    try:
        with session.transaction(engine) as opened:
            token = projects.offer_login(opened, projects.authenticate(opened, owner).key, datetime.now(UTC) + LOGIN_FOR)
    finally:
        engine.dispose()
    return f"{dashboard_url}/login?token={token}"
