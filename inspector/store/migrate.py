"""Brings a database to the schema of this version: expand, then contract, never by hand."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config

import inspector


def configuration(database_url: str) -> Config:
    """Alembic's configuration for this package; there is no alembic.ini."""
    inside = Path(inspector.__file__).parent / "migrations"  # in a wheel
    config = Config()
    config.set_main_option("script_location", str(inside if inside.exists() else inside.parent.parent / "migrations"))
    config.attributes["database_url"] = database_url
    return config


def upgrade(database_url: str, revision: str = "head") -> None:
    """Run what is missing; safe to call from several processes at once."""
    command.upgrade(configuration(database_url), revision)
