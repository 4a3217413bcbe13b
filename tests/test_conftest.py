"""The servers that all tests share."""

from __future__ import annotations

import psycopg

from inspector.queue import redis_client


def test_each_test_has_a_database_of_its_own(database, module_database):
    with psycopg.connect(database) as one, psycopg.connect(module_database) as other:
        one.execute("CREATE TABLE mine (x int)")
        assert other.execute("SELECT count(*) FROM pg_tables WHERE tablename = 'mine'").fetchone() == (0,)


def test_a_database_has_the_schema(database):
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM alembic_version").fetchone() == (1,)


def test_acknowledged_means_durable_here_too(postgres):
    with psycopg.connect(postgres) as connection:
        assert [connection.execute(f"SHOW {name}").fetchone() for name in ("fsync", "synchronous_commit", "full_page_writes")] == [("on",)] * 3


def test_redis_answers(redis):
    assert redis_client(redis).ping()
