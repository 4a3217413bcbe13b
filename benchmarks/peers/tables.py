"""The peers' two tables: the trajectory as JSONB, and one verdict row for each check."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from sqlalchemy import BigInteger, Boolean, DateTime, Double, Engine, ForeignKey, Index, Text, create_engine, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    pass


class Trajectory(Base):
    __tablename__ = "trajectory"
    __table_args__ = (Index("trajectory_newest", "received_at"), Index("trajectory_by_environment", "environment", "id"))

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    name: Mapped[str] = mapped_column(Text, unique=True)
    environment: Mapped[str] = mapped_column(Text)
    version: Mapped[str] = mapped_column(Text)
    task: Mapped[str] = mapped_column(Text)
    reward: Mapped[float | None] = mapped_column(Double)
    body: Mapped[dict[str, Any]] = mapped_column(JSONB)
    received_at: Mapped[Any] = mapped_column(DateTime(timezone=True), server_default=func.now())


class Verdict(Base):
    __tablename__ = "verdict"
    __table_args__ = (Index("verdict_of_trajectory", "trajectory"),)

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    trajectory: Mapped[int] = mapped_column(ForeignKey("trajectory.id"))
    check: Mapped[str] = mapped_column(Text)
    flagged: Mapped[bool] = mapped_column(Boolean)
    score: Mapped[float] = mapped_column(Double)
    details: Mapped[list[str]] = mapped_column(JSONB)


@cache
def engine() -> Engine:
    """One in each process."""
    url = os.environ["BENCH_DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://", 1)
    return create_engine(url, pool_size=8, max_overflow=40)
