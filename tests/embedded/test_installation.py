"""The first keys: made once, kept for their owner, lost at no moment."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from types import ModuleType

import pytest
from sqlalchemy import text
from sqlmodel import Session

from inspector.embedded.installation import first_keys, read_keys


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The words of the store for keys, over one table: made when there are none, None when there are."""
    module = ModuleType("inspector.store.keys")

    def ensure_installation(session: Session) -> dict[str, str] | None:
        session.execute(text("CREATE TABLE IF NOT EXISTS made (n serial)"))
        if session.execute(text("SELECT count(*) FROM made")).scalar():
            return None
        number = session.execute(text("INSERT INTO made DEFAULT VALUES RETURNING n")).scalar()
        return {"trainer": f"ins_{number}"}

    module.ensure_installation = ensure_installation
    monkeypatch.setitem(sys.modules, "inspector.store.keys", module)
    return module


def test_keys_are_made_once_and_only_their_owner_reads_them(keys, database, tmp_path: Path):
    assert first_keys(database, tmp_path) == {"trainer": "ins_1"}
    assert first_keys(database, tmp_path) == {"trainer": "ins_1"}
    assert stat.S_IMODE((tmp_path / "keys.json").stat().st_mode) == 0o600


def test_a_crash_before_the_commit_makes_new_keys_that_count(keys, database, tmp_path: Path):
    once = keys.ensure_installation

    def crash(session: Session) -> dict[str, str]:
        raise KeyboardInterrupt

    keys.ensure_installation = crash
    with pytest.raises(KeyboardInterrupt):
        first_keys(database, tmp_path)
    (tmp_path / "keys.json").write_text('{"trainer": "ins_of_no_database"}')
    keys.ensure_installation = once
    assert first_keys(database, tmp_path) == {"trainer": "ins_1"}


def test_a_database_with_keys_of_its_own_gives_none_here(keys, database, tmp_path: Path):
    first_keys(database, tmp_path)
    (tmp_path / "elsewhere").mkdir()
    assert first_keys(database, tmp_path / "elsewhere") == {}
    assert read_keys(tmp_path) == {"trainer": "ins_1"}
