"""The tables: indexed scalars only; what is long lies in segments, what is small and opaque in bytes.

Numbers stand for words where a row is written per trajectory (verdict, action, cause): their enumerations are in
`inspector.verdict` and `inspector.store.codes`, and never change their meaning.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Text,
    Uuid,
    text,
)
from sqlmodel import Field, SQLModel


def _column(kind: Any, *extra: Any, null: bool = False, **options: Any) -> Column[Any]:
    return Column(kind, *extra, nullable=null, **options)


def _identity() -> Column[Any]:
    return Column(BigInteger, primary_key=True, autoincrement=True)


def _now() -> Column[Any]:
    return _column(DateTime(timezone=True), server_default=text("clock_timestamp()"))


class ProjectRow(SQLModel, table=True):
    __tablename__ = "project"

    id: int | None = Field(default=None, sa_column=_identity())
    uuid: UUID = Field(sa_column=_column(Uuid, unique=True))  # names the folder of its segments
    name: str = Field(sa_column=_column(Text, unique=True))
    created_at: datetime | None = Field(default=None, sa_column=_now())


class KeyRow(SQLModel, table=True):
    """An API key: only its hash is kept."""

    __tablename__ = "api_key"

    id: UUID = Field(sa_column=_column(Uuid, primary_key=True))
    project: int | None = Field(default=None, sa_column=_column(BigInteger, ForeignKey("project.id"), null=True))  # NULL: the installation
    name: str = Field(sa_column=_column(Text))
    role: str = Field(sa_column=_column(Text))
    sha256: bytes = Field(sa_column=_column(LargeBinary, unique=True))
    prefix: str = Field(sa_column=_column(Text))  # the first characters, to recognise it by
    created_at: datetime | None = Field(default=None, sa_column=_now())
    expires_at: datetime | None = Field(default=None, sa_column=_column(DateTime(timezone=True), null=True))
    revoked_at: datetime | None = Field(default=None, sa_column=_column(DateTime(timezone=True), null=True))


class LoginRow(SQLModel, table=True):
    """A one-time token that opens the dashboard with a key's authority; with `used_at`, the session that it was exchanged for."""

    __tablename__ = "login"

    sha256: bytes = Field(sa_column=_column(LargeBinary, primary_key=True))
    key: UUID = Field(sa_column=_column(Uuid, ForeignKey("api_key.id")))
    expires_at: datetime = Field(sa_column=_column(DateTime(timezone=True)))
    used_at: datetime | None = Field(default=None, sa_column=_column(DateTime(timezone=True), null=True))


class EnvironmentVersionRow(SQLModel, table=True):
    """Belongs to the installation; every project that posted it sees it."""

    __tablename__ = "environment_version"
    __table_args__ = (
        Index("environment_version_name", "environment", "version", unique=True),
        Index("environment_version_not_active", "id", postgresql_where=text("state <> 'active'")),
    )

    id: int | None = Field(default=None, sa_column=_identity())
    environment: str = Field(sa_column=_column(Text))
    version: str = Field(sa_column=_column(Text))
    declaration: bytes | None = Field(default=None, sa_column=_column(LargeBinary, null=True))
    declared_at: datetime | None = Field(default=None, sa_column=_column(DateTime(timezone=True), null=True))
    state: str = Field(default="active", sa_column=_column(Text, server_default="active"))
    sampling_weight: float | None = Field(default=None, sa_column=_column(Double, null=True))
    created_at: datetime | None = Field(default=None, sa_column=_now())


class ProjectEnvironmentRow(SQLModel, table=True):
    """Which projects posted or declared which environment version."""

    __tablename__ = "project_environment"
    __table_args__ = (Index("project_environment_by_version", "environment_version"),)

    project: int = Field(sa_column=_column(BigInteger, ForeignKey("project.id"), primary_key=True))
    environment_version: int = Field(sa_column=_column(BigInteger, ForeignKey("environment_version.id"), primary_key=True))
    owner: bool = Field(default=False, sa_column=_column(Boolean, server_default="false"))  # it declared it first
    honest: int = Field(default=0, sa_column=_column(BigInteger, server_default="0"))  # audited, scored and accepted
    honest_sum: float = Field(default=0.0, sa_column=_column(Double, server_default="0"))  # of their rewards


class TaskRow(SQLModel, table=True):
    __tablename__ = "task"
    __table_args__ = (
        Index("task_name", "environment_version", "task", unique=True),
        Index("task_not_active", "environment_version", "id", postgresql_where=text("state <> 'active'")),
        Index("task_gravest", "environment_version", "gravity", "id", postgresql_where=text("probed IS NOT NULL")),
    )

    id: int | None = Field(default=None, sa_column=_identity())
    environment_version: int = Field(sa_column=_column(BigInteger, ForeignKey("environment_version.id")))
    task: str = Field(sa_column=_column(Text))
    declaration: bytes | None = Field(default=None, sa_column=_column(LargeBinary, null=True))
    state: str = Field(default="active", sa_column=_column(Text, server_default="active"))
    sampling_weight: float | None = Field(default=None, sa_column=_column(Double, null=True))
    exploits: int = Field(default=0, sa_column=_column(BigInteger, server_default="0"))  # confirmed ones
    probed: int | None = Field(default=None, sa_column=_column(BigInteger, null=True))  # the work of the last probe that could say something of it
    outcomes: list[str] | None = Field(default=None, sa_column=_column(ARRAY(Text), null=True))  # that it said
    gravity: int | None = Field(default=None, sa_column=_column(SmallInteger, null=True))  # of them: the lower the worse


class ProjectTaskRow(SQLModel, table=True):
    """Which projects posted which task: they are told of its states."""

    __tablename__ = "project_task"

    project: int = Field(sa_column=_column(BigInteger, primary_key=True, autoincrement=False))
    task: int = Field(sa_column=_column(BigInteger, primary_key=True, autoincrement=False))


class ProjectStateRow(SQLModel, table=True):
    """A state that a project set for itself alone, beside the one that holds for all."""

    __tablename__ = "project_state"

    project: int = Field(sa_column=_column(BigInteger, ForeignKey("project.id"), primary_key=True))
    environment_version: int = Field(sa_column=_column(BigInteger, ForeignKey("environment_version.id"), primary_key=True))
    task: int = Field(sa_column=_column(BigInteger, primary_key=True, autoincrement=False))  # 0: the environment version itself
    state: str = Field(sa_column=_column(Text))
    sampling_weight: float | None = Field(default=None, sa_column=_column(Double, null=True))


class RunRow(SQLModel, table=True):
    __tablename__ = "run"
    __table_args__ = (
        Index("run_name", "project", "run", unique=True),
        Index("run_newest", "project", "id"),
        CheckConstraint("mode in ('observe', 'enforce')", name="run_mode"),
    )

    id: int | None = Field(default=None, sa_column=_identity())
    project: int = Field(sa_column=_column(BigInteger, ForeignKey("project.id")))
    run: str = Field(sa_column=_column(Text))
    trainer: str | None = Field(default=None, sa_column=_column(Text, null=True))
    mode: str = Field(default="observe", sa_column=_column(Text, server_default="observe"))
    created_at: datetime | None = Field(default=None, sa_column=_now())


class RunStepRow(SQLModel, table=True):
    """What one update of a run was trained on, as the trainer said it."""

    __tablename__ = "run_step"
    __table_args__ = (
        Index("run_step_said", "run", "attempt", "step", unique=True),
        Index("run_step_newest", "run", "step", "number"),
        Index("run_step_heavy", "run", "number", postgresql_where=text("heavy")),
    )

    run: int = Field(sa_column=_column(BigInteger, ForeignKey("run.id"), primary_key=True))
    number: int = Field(sa_column=_column(BigInteger, primary_key=True, autoincrement=False))  # in the order in which they were told, from 1
    step: int = Field(sa_column=_column(BigInteger))
    attempt: str = Field(sa_column=_column(Text))  # a trainer that goes back to a checkpoint repeats steps under another one
    policy_before: int = Field(sa_column=_column(BigInteger))
    policy_after: int = Field(sa_column=_column(BigInteger))
    checkpoint: str | None = Field(default=None, sa_column=_column(Text, null=True))
    used: int = Field(sa_column=_column(Integer))  # rows with a weight
    mass: float = Field(sa_column=_column(Double))  # of the absolute rewards that they carried, weighted
    known: float = Field(default=0.0, sa_column=_column(Double, server_default="0"))  # of it, what trajectories carried that were posted
    bad: float = Field(default=0.0, sa_column=_column(Double, server_default="0"))  # of it, what confirmed exploits and verifier defects carried
    bad_rows: int = Field(default=0, sa_column=_column(Integer, server_default="0"))
    sources: list[str] = Field(default=[], sa_column=_column(ARRAY(Text), server_default="{}"))  # of which each alone carried too much
    heavy: bool = Field(default=False, sa_column=_column(Boolean, server_default="false"))  # together they carried too much
    body: bytes = Field(sa_column=_column(LargeBinary))
    posted_at: datetime | None = Field(default=None, sa_column=_now())


class UsedRow(SQLModel, table=True):
    """One trajectory of one update."""

    __tablename__ = "used"
    __table_args__ = (
        Index("used_by_key", "key", postgresql_where=text("key IS NOT NULL")),
        Index("used_unknown", "id", postgresql_where=text("key IS NULL")),
        Index("used_unknown_of", "run", "number", postgresql_where=text("key IS NULL")),
    )

    run: int = Field(sa_column=_column(BigInteger, primary_key=True, autoincrement=False))
    number: int = Field(sa_column=_column(BigInteger, primary_key=True, autoincrement=False))
    key: UUID | None = Field(default=None, sa_column=_column(Uuid, null=True))  # NULL: it was not posted yet
    weight: float = Field(sa_column=_column(Double))
    reward: float | None = Field(default=None, sa_column=_column(Double, null=True))
    position: int = Field(sa_column=_column(Integer, primary_key=True, autoincrement=False))
    id: str | None = Field(default=None, sa_column=_column(Text, null=True))  # of what was not posted yet


class DoubtRow(SQLModel, table=True):
    """An update of which something became known that it was trained on: its share is to be looked at again."""

    __tablename__ = "doubt"

    id: int | None = Field(default=None, sa_column=_identity())
    project: int = Field(sa_column=_column(BigInteger))
    run: int = Field(sa_column=_column(BigInteger))
    number: int = Field(sa_column=_column(BigInteger))


class RollbackRow(SQLModel, table=True):
    """Advice to go back to a checkpoint, that stands until it is followed or taken back."""

    __tablename__ = "rollback"
    __table_args__ = (Index("rollback_open", "run", unique=True, postgresql_where=text("open")),)

    project: int = Field(sa_column=_column(BigInteger, ForeignKey("project.id"), primary_key=True, autoincrement=False))
    seq: int = Field(sa_column=_column(BigInteger, primary_key=True, autoincrement=False))  # of its decision
    run: int = Field(sa_column=_column(BigInteger, ForeignKey("run.id")))
    number: int = Field(sa_column=_column(BigInteger))  # of the first update that is to be undone
    policy_version: int = Field(sa_column=_column(BigInteger))  # to go back to
    sources: list[str] = Field(sa_column=_column(ARRAY(Text)))
    open: bool = Field(default=True, sa_column=_column(Boolean, server_default="true"))


class StoppedRow(SQLModel, table=True):
    """A check whose enforcement is stopped for a run: it caused too large a share of that run's decisions."""

    __tablename__ = "stopped"

    run: int = Field(sa_column=_column(BigInteger, ForeignKey("run.id"), primary_key=True))
    check_version: int = Field(sa_column=_column(BigInteger, ForeignKey("check_version.id"), primary_key=True))
    share: float = Field(sa_column=_column(Double))
    stopped_at: datetime | None = Field(default=None, sa_column=_now())


class CheckVersionRow(SQLModel, table=True):
    __tablename__ = "check_version"
    __table_args__ = (Index("check_version_name", "check", "version", "parameters", unique=True),)

    id: int | None = Field(default=None, sa_column=_identity())
    check: str = Field(sa_column=_column(Text))
    version: int = Field(sa_column=_column(Integer))
    parameters: str = Field(sa_column=_column(Text))  # digest


class RevocationRow(SQLModel, table=True):
    """A check version that a project took back: what it finds decides nothing there."""

    __tablename__ = "revocation"

    project: int = Field(sa_column=_column(BigInteger, ForeignKey("project.id"), primary_key=True))
    check_version: int = Field(sa_column=_column(BigInteger, ForeignKey("check_version.id"), primary_key=True))
    revoked_at: datetime | None = Field(default=None, sa_column=_now())


class SelectionRow(SQLModel, table=True):
    """An immutable list of checks; the packed outcomes of a trajectory are read against it."""

    __tablename__ = "selection"

    id: int | None = Field(default=None, sa_column=_identity())
    digest: bytes = Field(sa_column=_column(LargeBinary, unique=True))
    body: bytes = Field(sa_column=_column(LargeBinary))


class GroupRow(SQLModel, table=True):
    __tablename__ = "rollout_group"
    __table_args__ = (
        Index("rollout_group_name", "project", "run", "name", unique=True, postgresql_nulls_not_distinct=True),
        Index("rollout_group_open", "touched_at", postgresql_where=text("NOT closed")),
    )

    id: int | None = Field(default=None, sa_column=_identity())
    project: int = Field(sa_column=_column(BigInteger, ForeignKey("project.id")))
    run: int | None = Field(default=None, sa_column=_column(BigInteger, ForeignKey("run.id"), null=True))
    name: str = Field(sa_column=_column(Text))
    size: int | None = Field(default=None, sa_column=_column(Integer, null=True))
    audited: int = Field(default=0, sa_column=_column(Integer, server_default="0"))
    touched_at: datetime | None = Field(default=None, sa_column=_now())
    closed: bool = Field(default=False, sa_column=_column(Boolean, server_default="false"))  # its own audit was asked for
    mixed: bool = Field(default=False, sa_column=_column(Boolean, server_default="false"))  # several tasks, and its members know


class TrajectoryRow(SQLModel, table=True):
    """Where a posted line lies and what it is about. The time of receipt is in the key (UUIDv7)."""

    __tablename__ = "trajectory"
    __table_args__ = (
        Index("trajectory_id", "project", "id", unique=True),
        Index("trajectory_newest", "project", "key"),
        Index("trajectory_by_environment", "environment_version", "project", "key"),
        Index("trajectory_by_task", "task", "project", "key"),
        Index("trajectory_by_run", "run", "key", postgresql_where=text("run IS NOT NULL")),
        Index("trajectory_by_group", "group_id", postgresql_where=text("group_id IS NOT NULL")),
    )

    key: UUID = Field(sa_column=_column(Uuid, primary_key=True))
    project: int = Field(sa_column=_column(BigInteger))
    environment_version: int = Field(sa_column=_column(BigInteger))
    task: int = Field(sa_column=_column(BigInteger))
    run: int | None = Field(default=None, sa_column=_column(BigInteger, null=True))
    group_id: int | None = Field(default=None, sa_column=_column(BigInteger, null=True))
    step: int | None = Field(default=None, sa_column=_column(BigInteger, null=True))
    policy_version: int | None = Field(default=None, sa_column=_column(BigInteger, null=True))
    reward: float | None = Field(default=None, sa_column=_column(Double, null=True))  # NULL: not scored
    segment: int = Field(sa_column=_column(BigInteger))
    place: int = Field(sa_column=_column(BigInteger))  # of the stretch in the segment
    length: int = Field(sa_column=_column(Integer))
    selection: int = Field(sa_column=_column(Integer))
    line: int = Field(sa_column=_column(SmallInteger))
    sha256: bytes = Field(sa_column=_column(LargeBinary))
    id: str = Field(sa_column=_column(Text))


class WorkRow(SQLModel, table=True):
    """What waits to be audited. A row is there until a closing transaction took it away with its lease."""

    __tablename__ = "work"
    __table_args__ = (
        Index("work_next", "lane", "priority", "id", postgresql_where=text("claims = 0")),
        Index("work_leased", "until", postgresql_where=text("claims > 0")),
        Index("work_late", "group_id", postgresql_where=text("lane = 1")),
        Index("work_overdue", "added_at", postgresql_where=text("lane = 1")),
    )

    id: int | None = Field(default=None, sa_column=_identity())
    project: int = Field(sa_column=_column(BigInteger))
    key: UUID | None = Field(default=None, sa_column=_column(Uuid, null=True))  # a trajectory
    group_id: int | None = Field(default=None, sa_column=_column(BigInteger, null=True))  # or a group
    priority: int = Field(default=0, sa_column=_column(SmallInteger, server_default="0"))  # smaller is sooner
    lane: int = Field(default=0, sa_column=_column(SmallInteger, server_default="0"))  # 0 fast, 1 late
    claims: int = Field(default=0, sa_column=_column(SmallInteger, server_default="0"))
    length: int = Field(default=0, sa_column=_column(Integer, server_default="0"))
    lease: int = Field(default=0, sa_column=_column(BigInteger, server_default="0"))
    until: datetime | None = Field(default=None, sa_column=_column(DateTime(timezone=True), null=True))
    added_at: datetime | None = Field(default=None, sa_column=_now())


class VerdictRow(SQLModel, table=True):
    """What the checks and the policy said of a trajectory, in one narrow row."""

    __tablename__ = "verdict"
    __table_args__ = (
        Index("verdict_triage", "project", text("verdict DESC"), text("probability DESC"), text("key DESC"), postgresql_where=text("open")),
        Index("verdict_worst", "project", "verdict", "key", postgresql_where=text("verdict >= 2")),
        Index("verdict_standing", "project", "seq", postgresql_where=text("seq IS NOT NULL")),
        Index("verdict_content", "project", "content", "key"),
        Index("verdict_state", "project", "state", "key", postgresql_where=text("state IS NOT NULL")),
        Index("verdict_answer", "project", "answer", "key", postgresql_where=text("answer IS NOT NULL AND verdict < 3")),
    )

    key: UUID = Field(sa_column=_column(Uuid, primary_key=True))
    project: int = Field(sa_column=_column(BigInteger))
    content: int | None = Field(default=None, sa_column=_column(BigInteger, null=True))  # of the steps without ids and times
    state: int | None = Field(default=None, sa_column=_column(BigInteger, null=True))  # of what the episode left, where that is attached
    answer: int | None = Field(default=None, sa_column=_column(BigInteger, null=True))  # of its final answer, where that is all that could be graded
    seq: int | None = Field(default=None, sa_column=_column(BigInteger, null=True))  # of the standing decision, where it was logged
    reward_override: float | None = Field(default=None, sa_column=_column(Double, null=True))
    probability: float = Field(sa_column=_column(Double))
    policy: int = Field(sa_column=_column(Integer))
    verdict: int = Field(sa_column=_column(SmallInteger))
    action: int = Field(sa_column=_column(SmallInteger))
    cause: int | None = Field(default=None, sa_column=_column(SmallInteger, null=True))
    open: bool = Field(default=False, sa_column=_column(Boolean))  # waits for a person
    final: bool = Field(default=False, sa_column=_column(Boolean))
    retry: bool = Field(default=False, sa_column=_column(Boolean))
    by_person: bool = Field(default=False, sa_column=_column(Boolean, server_default="false"))
    counted: int = Field(default=0, sa_column=_column(SmallInteger, server_default="0"))  # as what: bits of verdicts.Counted
    outcomes: bytes = Field(sa_column=_column(LargeBinary))  # one byte a check of the trajectory's selection
    notes: bytes | None = Field(default=None, sa_column=_column(LargeBinary, null=True))  # {check index: missing need or error}


class AnswerRow(SQLModel, table=True):
    """A final answer under one task: whether it was ever paid, and ever refused."""

    __tablename__ = "answer"
    __table_args__ = (Index("answer_of_task", "project", "task", "number"),)

    project: int = Field(sa_column=_column(BigInteger, primary_key=True, autoincrement=False))
    number: int = Field(sa_column=_column(BigInteger, primary_key=True, autoincrement=False))  # of the answer in its environment version
    task: int = Field(sa_column=_column(BigInteger, primary_key=True, autoincrement=False))
    paid: bool = Field(sa_column=_column(Boolean))
    refused: bool = Field(sa_column=_column(Boolean))


class LookBackRow(SQLModel, table=True):
    """A block that was closed, and whose trajectories' twins are still to be told."""

    __tablename__ = "look_back"

    id: int | None = Field(default=None, sa_column=_identity())
    keys: bytes = Field(sa_column=_column(LargeBinary))  # 16 bytes each
    promised_at: datetime | None = Field(default=None, sa_column=_now())


class PolicyRow(SQLModel, table=True):
    __tablename__ = "policy"

    id: int | None = Field(default=None, sa_column=_identity())
    name: str = Field(sa_column=_column(Text))  # as default@1
    digest: bytes = Field(sa_column=_column(LargeBinary, unique=True))


class FindingRow(SQLModel, table=True):
    __tablename__ = "finding"
    __table_args__ = (Index("finding_by_check", "check_version", "key", postgresql_where=text("deciding")),)

    key: UUID = Field(sa_column=_column(Uuid, primary_key=True))
    position: int = Field(sa_column=_column(SmallInteger, primary_key=True))
    check_version: int = Field(sa_column=_column(BigInteger))
    deciding: bool = Field(sa_column=_column(Boolean))  # the action rests on it
    body: bytes = Field(sa_column=_column(LargeBinary))


class FeedRow(SQLModel, table=True):
    """The head of a project's decision log. Its `last` is taken last in a transaction, and never from a sequence."""

    __tablename__ = "feed"

    project: int = Field(sa_column=_column(BigInteger, ForeignKey("project.id"), primary_key=True))
    epoch: UUID = Field(sa_column=_column(Uuid))
    last: int = Field(default=0, sa_column=_column(BigInteger, server_default="0"))
    first: int = Field(default=1, sa_column=_column(BigInteger, server_default="1"))  # older ones are past the horizon
    revocations: int = Field(default=0, sa_column=_column(BigInteger, server_default="0"))  # acts by which checks were taken back


class DecisionRow(SQLModel, table=True):
    __tablename__ = "decision"
    __table_args__ = (Index("decision_by_key", "key", postgresql_where=text("key IS NOT NULL")),)

    project: int = Field(sa_column=_column(BigInteger, primary_key=True))
    seq: int = Field(sa_column=_column(BigInteger, primary_key=True))
    key: UUID | None = Field(default=None, sa_column=_column(Uuid, null=True))
    body: bytes = Field(sa_column=_column(LargeBinary))


class WebhookRow(SQLModel, table=True):
    """An address that a project's decisions are posted to, one after the other. Its secret is not here: it is derived from the operator's."""

    __tablename__ = "webhook"
    __table_args__ = (
        Index("webhook_of", "project", "id"),
        Index("webhook_due", "due_at", "id", postgresql_where=text("disabled_at IS NULL")),
    )

    id: UUID = Field(sa_column=_column(Uuid, primary_key=True))
    project: int = Field(sa_column=_column(BigInteger, ForeignKey("project.id")))
    url: str = Field(sa_column=_column(Text))
    note: str = Field(default="", sa_column=_column(Text, server_default=""))
    scopes: list[str] | None = Field(default=None, sa_column=_column(ARRAY(Text), null=True))  # NULL: all
    actions: list[str] | None = Field(default=None, sa_column=_column(ARRAY(Text), null=True))
    epoch: UUID = Field(sa_column=_column(Uuid))
    seq: int = Field(sa_column=_column(BigInteger))  # what was delivered or is not wanted ends here
    generation: int = Field(default=1, sa_column=_column(Integer, server_default="1"))  # of the secret
    former_until: datetime | None = Field(default=None, sa_column=_column(DateTime(timezone=True), null=True))  # the one before signs too
    failures: int = Field(default=0, sa_column=_column(Integer, server_default="0"))  # since the last success
    due_at: datetime | None = Field(default=None, sa_column=_now())
    tests: int = Field(default=0, sa_column=_column(Integer, server_default="0"))  # asked for and not sent yet
    lease: int = Field(default=0, sa_column=_column(BigInteger, server_default="0"))
    until: datetime | None = Field(default=None, sa_column=_column(DateTime(timezone=True), null=True))
    disabled_at: datetime | None = Field(default=None, sa_column=_column(DateTime(timezone=True), null=True))
    why: str = Field(default="", sa_column=_column(Text, server_default=""))  # it is disabled
    created_at: datetime | None = Field(default=None, sa_column=_now())


class WebhookAttemptRow(SQLModel, table=True):
    """One post to a webhook's address; the newest are kept."""

    __tablename__ = "webhook_attempt"
    __table_args__ = (Index("webhook_attempt_of", "webhook", "id"),)

    id: int | None = Field(default=None, sa_column=_identity())
    webhook: UUID = Field(sa_column=_column(Uuid, ForeignKey("webhook.id", ondelete="CASCADE")))
    message: str = Field(sa_column=_column(Text))
    seq: int | None = Field(default=None, sa_column=_column(BigInteger, null=True))  # NULL: it told of no decision
    status: int | None = Field(default=None, sa_column=_column(Integer, null=True))  # NULL: no whole answer came
    ms: int = Field(sa_column=_column(Integer))
    said: str = Field(sa_column=_column(Text))  # the beginning of a foreign answer, or why there is none
    attempted_at: datetime | None = Field(default=None, sa_column=_now())


class ReviewRow(SQLModel, table=True):
    """A person's judgement of a trajectory."""

    __tablename__ = "review"
    __table_args__ = (Index("review_by_key", "key"), Index("review_newest", "project", "reviewed_at", "key"))

    id: int | None = Field(default=None, sa_column=_identity())
    project: int = Field(sa_column=_column(BigInteger, ForeignKey("project.id")))
    key: UUID = Field(sa_column=_column(Uuid))
    person: str = Field(sa_column=_column(Text))
    judgement: str = Field(sa_column=_column(Text))
    reward: float | None = Field(default=None, sa_column=_column(Double, null=True))
    cause: int | None = Field(default=None, sa_column=_column(SmallInteger, null=True))  # as the person said; NULL where they left it
    note: str = Field(default="", sa_column=_column(Text, server_default=""))
    before: int | None = Field(default=None, sa_column=_column(SmallInteger, null=True))  # the checks' verdict; NULL where a person's stood
    canary: bool = Field(default=False, sa_column=_column(Boolean, server_default="false"))  # a known fault that was planted
    seq: int = Field(sa_column=_column(BigInteger))
    reviewed_at: datetime | None = Field(default=None, sa_column=_now())


class SpotCheckRow(SQLModel, table=True):
    """A trajectory that chance picked for a person to look at, whatever the checks say of it."""

    __tablename__ = "spot_check"
    __table_args__ = (Index("spot_check_next", "project", "place", "key", postgresql_where=text("open")), Index("spot_check_of", "project", "key"))

    key: UUID = Field(sa_column=_column(Uuid, primary_key=True))
    project: int = Field(sa_column=_column(BigInteger))
    place: float = Field(sa_column=_column(Double))  # where its key stands between 0 and 1: the smallest are looked at first
    share: float = Field(sa_column=_column(Double))  # below which places were picked when it came
    open: bool = Field(default=True, sa_column=_column(Boolean, server_default="true"))  # nobody looked at it yet


class CalibrationRow(SQLModel, table=True):
    """A project's model from findings to a probability; the bodies of old ones are gone."""

    __tablename__ = "calibration"

    project: int = Field(sa_column=_column(BigInteger, ForeignKey("project.id"), primary_key=True))
    version: int = Field(sa_column=_column(Integer, primary_key=True))
    digest: bytes = Field(sa_column=_column(LargeBinary))  # sha256 of the body
    policy: str = Field(sa_column=_column(Text))  # the digest of the one that it was fitted under
    until: int = Field(sa_column=_column(BigInteger))  # the last review that was looked at, also where it changed nothing
    why: str = Field(sa_column=_column(Text))  # it holds
    body: bytes | None = Field(default=None, sa_column=_column(LargeBinary, null=True))
    fitted_at: datetime | None = Field(default=None, sa_column=_now())


class StateChangeRow(SQLModel, table=True):
    """Every change of state of an environment version or task, with who made it and why."""

    __tablename__ = "state_change"
    __table_args__ = (
        Index("state_change_by_version", "environment_version", "id"),
        Index("state_change_of_policy", "changed_at", postgresql_where=text("share IS NOT NULL")),
    )

    id: int | None = Field(default=None, sa_column=_identity())
    project: int | None = Field(default=None, sa_column=_column(BigInteger, ForeignKey("project.id"), null=True))  # NULL: for all
    environment_version: int = Field(sa_column=_column(BigInteger, ForeignKey("environment_version.id")))
    task: int | None = Field(default=None, sa_column=_column(BigInteger, ForeignKey("task.id"), null=True))
    before: str = Field(sa_column=_column(Text))
    after: str = Field(sa_column=_column(Text))
    author: str = Field(sa_column=_column(Text))
    note: str = Field(default="", sa_column=_column(Text, server_default=""))
    share: float | None = Field(default=None, sa_column=_column(Double, null=True))  # of the training weight that the policy quarantined with it
    changed_at: datetime | None = Field(default=None, sa_column=_now())


class StandingRow(SQLModel, table=True):
    """What a state that holds for all rests on, and what was counted since it began. Of tasks, those of which there is something to tell."""

    __tablename__ = "standing"
    __table_args__ = (Index("standing_due", "due_at", postgresql_where=text("due_at IS NOT NULL")),)

    environment_version: int = Field(sa_column=_column(BigInteger, ForeignKey("environment_version.id"), primary_key=True, autoincrement=False))
    task: int = Field(sa_column=_column(BigInteger, primary_key=True, autoincrement=False))  # 0: the environment version itself
    why: str = Field(default="", sa_column=_column(Text, server_default=""))
    held: bool = Field(default=False, sa_column=_column(Boolean, server_default="false"))  # by a person, until they hand it back
    since: datetime | None = Field(default=None, sa_column=_now())
    seen_at: datetime | None = Field(default=None, sa_column=_now())
    due_at: datetime | None = Field(default=None, sa_column=_column(DateTime(timezone=True), null=True))  # when it is to be looked at
    score: float = Field(default=0.0, sa_column=_column(Double, server_default="0"))  # of the evidence
    body: bytes | None = Field(default=None, sa_column=_column(LargeBinary, null=True))  # the evidence


class NoticeRow(SQLModel, table=True):
    """What a project is told of an environment version that it owns, and is to look at."""

    __tablename__ = "notice"
    __table_args__ = (Index("notice_newest", "project", "id"),)

    id: int | None = Field(default=None, sa_column=_identity())
    project: int = Field(sa_column=_column(BigInteger, ForeignKey("project.id")))
    environment_version: int = Field(sa_column=_column(BigInteger, ForeignKey("environment_version.id")))
    task: int | None = Field(default=None, sa_column=_column(BigInteger, ForeignKey("task.id"), null=True))
    kind: str = Field(sa_column=_column(Text))
    body: bytes = Field(sa_column=_column(LargeBinary))  # JSON
    noticed_at: datetime | None = Field(default=None, sa_column=_now())


class PatchRow(SQLModel, table=True):
    """A field of a trajectory that came later than the line itself; once per field."""

    __tablename__ = "patch"

    key: UUID = Field(sa_column=_column(Uuid, primary_key=True))
    field: str = Field(sa_column=_column(Text, primary_key=True))
    value: bytes = Field(sa_column=_column(LargeBinary))
    posted_at: datetime | None = Field(default=None, sa_column=_now())


class BaselineWindowRow(SQLModel, table=True):
    """The features of an environment version's last episodes in a project: what its models are fitted on."""

    __tablename__ = "baseline_window"

    project: int = Field(sa_column=_column(BigInteger, ForeignKey("project.id"), primary_key=True))
    environment_version: int = Field(sa_column=_column(BigInteger, ForeignKey("environment_version.id"), primary_key=True))
    body: bytes = Field(sa_column=_column(LargeBinary))


class BaselineModelRow(SQLModel, table=True):
    """A fitted model of what is ordinary in a project; the bodies of old ones are gone."""

    __tablename__ = "baseline_model"

    project: int = Field(sa_column=_column(BigInteger, ForeignKey("project.id"), primary_key=True))
    version: int = Field(sa_column=_column(Integer, primary_key=True))
    digest: bytes = Field(sa_column=_column(LargeBinary))  # sha256 of the body
    episodes: int = Field(sa_column=_column(Integer))  # that it was learnt from
    until: UUID = Field(sa_column=_column(Uuid))  # the newest trajectory that was there
    body: bytes | None = Field(default=None, sa_column=_column(LargeBinary, null=True))
    fitted_at: datetime | None = Field(default=None, sa_column=_now())


class ArtifactRow(SQLModel, table=True):
    """A file that a project uploaded, by its digest."""

    __tablename__ = "artifact"

    project: int = Field(sa_column=_column(BigInteger, ForeignKey("project.id"), primary_key=True))
    sha256: bytes = Field(sa_column=_column(LargeBinary, primary_key=True))
    length: int = Field(sa_column=_column(BigInteger))
    uploaded_at: datetime | None = Field(default=None, sa_column=_now())


class PackageRow(SQLModel, table=True):
    """What an environment version is made of, for those who probe it: an uploaded tar, and how it is opened."""

    __tablename__ = "package"

    environment_version: int = Field(sa_column=_column(BigInteger, ForeignKey("environment_version.id"), primary_key=True, autoincrement=False))
    project: int = Field(sa_column=_column(BigInteger, ForeignKey("project.id")))  # whose artifact it is
    sha256: bytes | None = Field(default=None, sa_column=_column(LargeBinary, null=True))  # NULL where `entry` names what lies elsewhere
    face: str = Field(sa_column=_column(Text))
    entry: str | None = Field(default=None, sa_column=_column(Text, null=True))  # what is opened inside the tar; NULL: all that is in it
    dataset: str | None = Field(default=None, sa_column=_column(Text, null=True))
    content_version: str | None = Field(default=None, sa_column=_column(Text, null=True))  # as the first probe read it, and the next too
    verifier_digest: str | None = Field(default=None, sa_column=_column(Text, null=True))
    one_verifier: bool = Field(default=False, sa_column=_column(Boolean, server_default="false"))  # of all its tasks
    hints: bytes | None = Field(default=None, sa_column=_column(LargeBinary, null=True))  # of the lint
    probed: int = Field(default=0, sa_column=_column(Integer, server_default="0"))  # tasks
    counts: bytes | None = Field(default=None, sa_column=_column(LargeBinary, null=True))  # of them by outcome, JSON
    probed_at: datetime | None = Field(default=None, sa_column=_column(DateTime(timezone=True), null=True))  # the last of them
    put_at: datetime | None = Field(default=None, sa_column=_now())


class ProbeRow(SQLModel, table=True):
    """A probe of an environment version, as it was asked for and as it stands."""

    __tablename__ = "probe"
    __table_args__ = (
        Index("probe_newest", "project", "id"),
        Index("probe_by_version", "environment_version", "project", "id"),
        Index("probe_open", "state", postgresql_where=text("ended_at IS NULL")),
    )

    id: UUID = Field(sa_column=_column(Uuid, primary_key=True))  # of version 7: its order is that of asking
    project: int = Field(sa_column=_column(BigInteger, ForeignKey("project.id")))
    environment_version: int = Field(sa_column=_column(BigInteger, ForeignKey("environment_version.id")))
    depth: str = Field(sa_column=_column(Text))
    tasks: list[str] | None = Field(default=None, sa_column=_column(ARRAY(Text), null=True))  # NULL: all
    priority: int = Field(sa_column=_column(SmallInteger))
    cpu_s: float | None = Field(default=None, sa_column=_column(Double, null=True))  # that may be spent
    wall_s: float | None = Field(default=None, sa_column=_column(Double, null=True))
    spent_cpu_s: float = Field(default=0.0, sa_column=_column(Double, server_default="0"))
    spent_wall_s: float = Field(default=0.0, sa_column=_column(Double, server_default="0"))
    state: str = Field(default="queued", sa_column=_column(Text, server_default="queued"))
    total: int | None = Field(default=None, sa_column=_column(Integer, null=True))  # tasks; NULL until they were listed
    closed: int = Field(default=0, sa_column=_column(Integer, server_default="0"))  # of them
    note: str = Field(default="", sa_column=_column(Text, server_default=""))
    asked_at: datetime | None = Field(default=None, sa_column=_now())
    began_at: datetime | None = Field(default=None, sa_column=_column(DateTime(timezone=True), null=True))
    ended_at: datetime | None = Field(default=None, sa_column=_column(DateTime(timezone=True), null=True))


class ReplayRow(SQLModel, table=True):
    """A trajectory whose final state is graded again. It stays, with the rewards, once it is closed."""

    __tablename__ = "replay"
    __table_args__ = (
        Index("replay_next", "due_at", "id", postgresql_where=text("closed_at IS NULL")),
        Index("replay_of", "key", "grader", unique=True, postgresql_nulls_not_distinct=True),
    )

    id: int | None = Field(default=None, sa_column=_identity())
    key: UUID = Field(sa_column=_column(Uuid))
    project: int = Field(sa_column=_column(BigInteger))
    environment_version: int = Field(sa_column=_column(BigInteger))
    grader: int | None = Field(default=None, sa_column=_column(BigInteger, null=True))  # the version whose repaired verifier grades; NULL: its own
    task: int = Field(sa_column=_column(BigInteger))
    state: bytes = Field(sa_column=_column(LargeBinary))  # the sha256 of the artifact
    posted: float = Field(sa_column=_column(Double))  # the reward that came with it
    wanted: int = Field(default=1, sa_column=_column(SmallInteger, server_default="1"))  # gradings in all
    rewards: list[float] = Field(default=[], sa_column=_column(ARRAY(Double), server_default="{}"))  # of those that were done
    note: str = Field(default="", sa_column=_column(Text, server_default=""))  # why the rest has no reward
    due_at: datetime | None = Field(default=None, sa_column=_now())
    claims: int = Field(default=0, sa_column=_column(SmallInteger, server_default="0"))  # since something was last reported
    lease: int = Field(default=0, sa_column=_column(BigInteger, server_default="0"))
    until: datetime | None = Field(default=None, sa_column=_column(DateTime(timezone=True), null=True))
    closed_at: datetime | None = Field(default=None, sa_column=_column(DateTime(timezone=True), null=True))


class RegradeRow(SQLModel, table=True):
    """An owner's word that a version's verifier is repaired: what the broken one spoiled is graded anew, in the order of the keys."""

    __tablename__ = "regrade"
    __table_args__ = (Index("regrade_open", "id", postgresql_where=text("open")),)

    id: int | None = Field(default=None, sa_column=_identity())
    project: int = Field(sa_column=_column(BigInteger, ForeignKey("project.id")))  # that asked
    environment_version: int = Field(sa_column=_column(BigInteger, ForeignKey("environment_version.id")))
    grader: int = Field(sa_column=_column(BigInteger, ForeignKey("environment_version.id")))
    after: UUID | None = Field(default=None, sa_column=_column(Uuid, server_default="00000000-0000-0000-0000-000000000000"))  # the last that was looked at
    left: int = Field(sa_column=_column(BigInteger))  # states that may still be graded
    found: int = Field(default=0, sa_column=_column(BigInteger, server_default="0"))
    open: bool = Field(default=True, sa_column=_column(Boolean, server_default="true"))
    asked_at: datetime | None = Field(default=None, sa_column=_now())


class ProbeWorkRow(SQLModel, table=True):
    """A part of a probe: the listing of its tasks, then each of them. It stays, with its report, once it is closed."""

    __tablename__ = "probe_work"
    __table_args__ = (
        Index("probe_work_next", "due_at", "id", postgresql_where=text("closed_at IS NULL")),
        Index("probe_work_of", "probe", "id"),
        Index("probe_work_by_task", "probe", "task"),
    )

    id: int | None = Field(default=None, sa_column=_identity())
    probe: UUID = Field(sa_column=_column(Uuid, ForeignKey("probe.id")))
    task: int | None = Field(default=None, sa_column=_column(BigInteger, ForeignKey("task.id"), null=True))  # NULL: the listing
    due_at: datetime | None = Field(default=None, sa_column=_now())  # the older, the sooner: what is urgent is due at once, the rest grows urgent
    claims: int = Field(default=0, sa_column=_column(SmallInteger, server_default="0"))
    lease: int = Field(default=0, sa_column=_column(BigInteger, server_default="0"))
    until: datetime | None = Field(default=None, sa_column=_column(DateTime(timezone=True), null=True))
    outcomes: list[str] | None = Field(default=None, sa_column=_column(ARRAY(Text), null=True))
    report: bytes | None = Field(default=None, sa_column=_column(LargeBinary, null=True))
    closed_at: datetime | None = Field(default=None, sa_column=_column(DateTime(timezone=True), null=True))
