"""Runs migrations under an advisory lock, so that several starts at once are harmless."""

from alembic import context
from sqlalchemy import create_engine, text
from sqlmodel import SQLModel

import inspector.store.tables  # noqa: F401  (fills the metadata)

url = context.config.attributes["database_url"]
engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
with engine.connect() as connection:
    connection.execute(text("SELECT pg_advisory_lock(7263001)"))
    connection.commit()
    context.configure(connection=connection, target_metadata=SQLModel.metadata, compare_type=True, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()
    connection.execute(text("SELECT pg_advisory_unlock(7263001)"))
    connection.commit()
engine.dispose()
