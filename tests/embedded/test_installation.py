"""The first keys: made once, kept for their owner, lost at no moment."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from inspector.embedded.installation import first_keys, login_address, read_keys
from inspector.errors import Unauthenticated
from inspector.store import installation, projects
from inspector.store.projects import Role
from inspector.store.session import connect, transaction


def test_keys_of_every_role_are_made_once_and_only_their_owner_reads_them(database: str, tmp_path: Path) -> None:
    made = first_keys(database, tmp_path)
    assert set(made) == set(Role)
    assert first_keys(database, tmp_path) == made
    assert stat.S_IMODE((tmp_path / "keys.json").stat().st_mode) == 0o600


def test_a_crash_before_the_commit_makes_new_keys_that_count(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(_: object) -> dict[str, str]:
        raise KeyboardInterrupt

    with monkeypatch.context() as crashing:
        crashing.setattr(installation, "ensure_installation", crash)
        with pytest.raises(KeyboardInterrupt):
            first_keys(database, tmp_path)
    (tmp_path / "keys.json").write_text('{"trainer": "ins_of_no_database"}')
    made = first_keys(database, tmp_path)
    engine = connect(database)
    with transaction(engine) as session:
        assert projects.authenticate(session, made["trainer"]).role is Role.TRAINER
    engine.dispose()


def test_a_database_with_keys_of_its_own_gives_none_here(database: str, tmp_path: Path) -> None:
    made = first_keys(database, tmp_path)
    (tmp_path / "elsewhere").mkdir()
    assert first_keys(database, tmp_path / "elsewhere") == {}
    assert read_keys(tmp_path) == made


def test_a_login_address_opens_the_dashboard_once(database: str, tmp_path: Path) -> None:
    first_keys(database, tmp_path)
    address = login_address("http://127.0.0.1:1", database, tmp_path)
    token = address.partition("?token=")[2]
    engine = connect(database)
    with transaction(engine) as session:
        _, holder = projects.take_login(session, token, _soon())
        assert holder.role is Role.OWNER
    with pytest.raises(Unauthenticated), transaction(engine) as session:
        projects.take_login(session, token, _soon())
    engine.dispose()


def _soon() -> datetime:
    return datetime.now(UTC) + timedelta(minutes=1)


def test_the_key_that_an_operator_chose_for_sandbox_workers_is_one_also_later(database: str, tmp_path: Path) -> None:
    first_keys(database, tmp_path)
    chosen = "ins_" + "c" * 43
    for _ in range(2):
        first_keys(database, tmp_path, prober_key=chosen)
    engine = connect(database)
    with transaction(engine) as session:
        holder = projects.authenticate(session, chosen)
        assert (holder.role, holder.project_name) == (Role.PROBER, None)
        assert len([key for key in projects.keys(session, None) if key.role is Role.PROBER]) == 2
    engine.dispose()
