"""Sessions with Postgres, and the only place that commits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import psycopg
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import DataError, DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlmodel import Session

from inspector.errors import BadSubmission, InspectorError, StorageFull, Unavailable


def connect(database_url: str, *, pool_size: int = 8) -> Engine:
    """An engine on `postgresql://…`; connections are tested before use, since a server may have been restarted."""
    url = database_url.replace("postgresql://", "postgresql+psycopg://", 1)
    engine = create_engine(url, pool_size=pool_size, max_overflow=pool_size, pool_pre_ping=True, pool_timeout=10, connect_args={"connect_timeout": 10})

    # A writer that is stopped inside a transaction (debugger, SIGSTOP) would hold the feed's counter for all others.
    @event.listens_for(engine, "connect")
    def _bound(connection: psycopg.Connection[Any], _: object) -> None:
        connection.execute("SET idle_in_transaction_session_timeout = '10s'; SET lock_timeout = '10s'; SET statement_timeout = '60s'")
        connection.commit()

    return engine


class AlreadyThere(InspectorError):
    """Another transaction wrote a row of the same key first."""


class NotStorable(BadSubmission):
    """A value that no column takes: out of range, or with characters that no text may have."""

    def __init__(self, detail: str) -> None:
        self.detail = detail  # the server's words, for logs and for whoever sent the value
        super().__init__("a value cannot be stored: out of range, or with characters that no text may have")


@contextmanager
def transaction(engine: Engine) -> Iterator[Session]:
    """A session that commits at the end, or rolls back on any error. Raises Unavailable when Postgres is away, AlreadyThere and NotStorable."""
    try:
        with Session(engine, expire_on_commit=False) as session:  # inside: where the connection broke, its end fails too
            yield session
            session.commit()
    except psycopg.errors.UniqueViolation as error:
        raise AlreadyThere(error.diag.message_primary or "a row of this key is there") from error
    except psycopg.DataError as error:
        raise NotStorable(error.diag.message_primary or str(error)) from error
    except psycopg.errors.DiskFull as error:
        raise StorageFull("the database has no room") from error
    except OperationalError as error:
        if isinstance(error.orig, psycopg.errors.DiskFull):
            raise StorageFull("the database has no room") from error
        raise Unavailable(f"the database is away: {type(error.orig).__name__}") from error
    except (psycopg.OperationalError, psycopg.errors.IdleInTransactionSessionTimeout) as error:  # the second where this process was stopped for a while
        raise Unavailable(f"the database is away: {type(error).__name__}") from error
    except PoolTimeout as error:
        raise Unavailable("every connection to the database is in use") from error
    except DataError as error:
        raise NotStorable(str(error.orig)) from error
    except DBAPIError as error:
        if error.connection_invalidated:
            raise Unavailable("the connection to the database broke") from error
        raise


def driver(session: Session) -> psycopg.Connection[Any]:
    """The psycopg connection under a session, for COPY and for statements over arrays; same transaction."""
    connection = session.connection().connection.driver_connection
    return cast("psycopg.Connection[Any]", connection)
