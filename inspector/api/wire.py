"""What requests and answers of the API look like, beside the trajectory itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec

from inspector.probe.sequential import Standing
from inspector.review import JudgementOfPerson
from inspector.solving import Rollouts
from inspector.store.projects import Role
from inspector.store.verdicts import Ruled
from inspector.task import Declaration, State
from inspector.trajectory import NO_CONTROLS, Identifier, OptionalText, Whole
from inspector.verdict import Action, Cause, Decision, Finding, Impact, Mode, Tier

Note = Annotated[str, msgspec.Meta(max_length=10_000)]


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is absent has its default."""


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A control body: an unknown field is an error."""


# --- posts and decisions -----------------------------------------------------------------------------------------------


class Ruling(Answer, frozen=True, kw_only=True):
    """What a trainer is to do with one trajectory; never what was thought of it."""

    action: Action
    final: bool
    mode: Mode
    enforced: bool
    reward_override: float | None = None
    cause: Cause | None = None
    retry: bool = False
    seq: int | None = None
    until: datetime | None = None  # of a hold


class LineReceipt(Answer, frozen=True, kw_only=True):
    """What became of one posted line."""

    line: int
    status: str  # created | duplicate | conflict | rejected
    id: str | None = None
    key: UUID | None = None
    reason: str | None = None
    path: str | None = None
    mode: Mode | None = None
    decision: Ruling | None = None


class FeedPage(Answer, frozen=True, kw_only=True):
    """Decisions behind a cursor."""

    epoch: UUID
    seq: int
    decisions: Sequence[Decision]
    more: bool


class StandingState(msgspec.Struct, frozen=True, kw_only=True):
    """A state other than active."""

    environment: str
    version: str
    task: str | None
    state: State
    sampling_weight: float | None
    audit_rate: float


class SnapshotPage(msgspec.Struct, frozen=True, kw_only=True):
    """What stands at one place of the feed."""

    epoch: UUID
    seq: int
    states: list[StandingState]
    decisions: list[Decision]
    next: str | None


class LookupRequest(Request, frozen=True, kw_only=True):
    """Producer ids."""

    ids: Annotated[list[Identifier], msgspec.Meta(max_length=10_000)]


class LookupAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A pending one is null."""

    epoch: UUID
    seq: int
    decisions: dict[str, Ruling | None]
    unknown: list[str]


class RevokeRequest(Request, frozen=True, kw_only=True):
    """Which check's version; a preview changes nothing."""

    check: Identifier
    version: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
    preview: bool = True


class RevokeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What it does, or would do."""

    decisions: int
    remaining: int
    by_action: dict[str, int]
    preview: bool


# --- trajectories ------------------------------------------------------------------------------------------------------


class TrajectoryLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a list."""

    key: UUID
    id: str
    environment: str
    version: str
    task: str
    run: str | None
    step: int | None
    group: str | None
    policy_version: int | None
    reward: float | None
    bytes: int
    verdict: str
    action: Action | None
    cause: Cause | None
    probability: float | None
    reward_override: float | None
    final: bool
    open: bool
    seq: int | None
    received_at: datetime
    why: str | None = None  # the worst finding's message, in triage
    why_check: str | None = None
    why_tier: Tier | None = None
    why_cause: Cause | None = None


class TrajectoryPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page; `scanned` rows were looked at for it."""

    trajectories: list[TrajectoryLine]
    next: str | None
    scanned: int


class TriageCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many wait for a person, by verdict, and how many people have judged; none is counted beyond `most`."""

    waiting: dict[str, int]
    reviewed_today: int  # trajectories, each once, judged by anyone of the project since `today` began
    today: datetime  # midnight in UTC
    most: int


class Coverage(Answer, frozen=True, kw_only=True):
    """What one check came to."""

    outcome: str
    version: int
    note: str | None = None  # the need that was missing, or the error


class ReviewLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a person said."""

    person: str
    judgement: str
    reward: float | None
    cause: Cause | None  # as the person said; none where they left it to the checks
    note: str
    seq: int
    reviewed_at: datetime


class TrajectoryAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One trajectory, with all that is known of it but its steps."""

    summary: TrajectoryLine
    envelope: dict[str, msgspec.Raw]
    by_person: bool
    policy: str | None
    findings: list[Finding]
    coverage: dict[str, Coverage]
    decisions: list[Decision]
    group_impact: Impact | None  # what is left of its group; None where nothing of it is out or has another reward
    reviews: list[ReviewLine]


class StepsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A window of steps, as they were posted."""

    total: int
    start: int
    steps: list[msgspec.Raw]
    bytes: int


class AmendAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a PATCH added."""

    key: UUID
    added: list[str]


class ArtifactAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An uploaded file."""

    sha256: str
    bytes: int


class ReviewRequest(Request, frozen=True, kw_only=True):
    """A person's judgement."""

    judgement: JudgementOfPerson
    reward: float | None = None
    cause: Cause | None = None  # of the fault; where it is left out, the checks' own stands
    note: Note = ""
    canary: bool = False  # a known fault that was planted, to see whether the checks find it; it needs its cause


# --- environments and runs ---------------------------------------------------------------------------------------------


class EnvironmentLine(msgspec.Struct, frozen=True, kw_only=True):
    """An environment version of a list."""

    environment: str
    version: str
    state: State
    sampling_weight: float | None
    declared: bool
    owner: bool
    probed: int  # tasks
    counts: Mapping[str, int]  # how many of them have each outcome; a task may have several
    probed_at: datetime | None  # the last of them


class EnvironmentPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of those that this project posted or declared."""

    environments: list[EnvironmentLine]
    next: str | None


class StandingAnswer(Answer, frozen=True, kw_only=True):
    """An environment version or a task, as it is declared and as it stands."""

    environment: str
    version: str
    state: State
    declared: bool
    declaration: Declaration
    task: str | None = None
    sampling_weight: float | None = None
    audit_rate: float = 0.0  # the share of its groups that the service is to be shown at least
    standing: StandingOn | None = None  # what the state that holds for all rests on
    rollouts: RolloutsLine | None = None  # of a task; None where this project posted no scored ones
    changes: list[StateChange] = []  # of it, the newest first


class RolloutsLine(msgspec.Struct, frozen=True, kw_only=True):
    """What this project's newest rollouts say of how hard a task is; that nobody solved it is no proof that nobody can."""

    scored: int
    paid: int
    standing: Standing  # of the three-way test: dead (hardly ever paid), usable (in between), easy (nearly always), open (too few), undecided
    rate: float
    low: float  # of the exact 95 % interval
    high: float


class StandingOn(msgspec.Struct, frozen=True, kw_only=True):
    """Why a state holds for all, since when, and what would end it; counts are of all projects since it began."""

    state: State
    why: str  # defects | exploits | infrastructure | probe | replays | check | fleet | clean | person, or empty
    since: datetime
    held: bool  # by a person: no evidence moves it until somebody hands it back
    evidence: dict[str, float]
    release: list[str]  # each by itself
    reproduce: str | None = None  # a command, beside the folder that was packed


class StateChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change of the state that holds for all."""

    before: State
    after: State
    author: str
    note: str
    changed_at: datetime


class StateRequest(Request, frozen=True, kw_only=True):
    """A person's quarantine or release."""

    state: State
    note: Note
    sampling_weight: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    hold: bool | None = None  # whether no evidence may change it until somebody sets a state without; None: whatever is not `active`


class StateAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What stands now, and how many projects were told."""

    environment: str
    version: str
    task: str | None
    state: State
    sampling_weight: float | None
    for_all: bool  # False: for the caller's project alone
    projects_told: int
    seq: int | None  # in the caller's own feed


class ModeRequest(Request, frozen=True, kw_only=True):
    """observe or enforce."""

    mode: Mode


class RunLine(msgspec.Struct, frozen=True, kw_only=True):
    """A training run."""

    run: str
    trainer: str | None
    mode: Mode
    created_at: datetime
    stopped: list[str]  # checks whose enforcement is stopped here


class RunPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page, newest first."""

    runs: list[RunLine]
    next: str | None


class Used(Request, frozen=True, kw_only=True):
    """One trajectory of an update."""

    id: Identifier
    weight: float
    reward: float | None = None


class FeedPlace(Request, frozen=True, kw_only=True):
    """How far the trainer had read the feed."""

    epoch: OptionalText
    seq: Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class RunStepRequest(Request, frozen=True, kw_only=True):
    """What one update was trained on."""

    policy_before: Whole
    policy_after: Whole
    attempt: Annotated[str, msgspec.Meta(max_length=64, pattern=NO_CONTROLS)] = ""  # another one for steps that are repeated from a checkpoint
    checkpoint: Annotated[str, msgspec.Meta(max_length=1000, pattern=NO_CONTROLS)] | None = None
    used: Annotated[list[Used], msgspec.Meta(max_length=100_000)] = []
    feed: FeedPlace | None = None
    statistics: dict[str, Any] = {}


class RunStepAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """created, or duplicate of the same report."""

    run: str
    step: int
    status: str


class RunStepPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page, in the order of the steps; each as it was posted, with its number."""

    steps: list[dict[str, Any]]
    next: str | None


# --- checks, keys, projects, logins ------------------------------------------------------------------------------------


class CheckLine(msgspec.Struct, frozen=True, kw_only=True):
    """An installed check."""

    name: str
    version: int
    tier: str
    cause: str
    subject: str
    needs: list[str]
    late: bool
    title: str
    description: str
    parameters: dict[str, Any]


class BrokenLine(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, and is not used."""

    name: str
    reason: str


class CheckList(msgspec.Struct, frozen=True, kw_only=True):
    """All of them."""

    checks: list[CheckLine]
    broken: list[BrokenLine]
    duplicates: list[BrokenLine]


class KeyRequest(Request, frozen=True, kw_only=True):
    """A new key. The installation's admin makes keys of its own, or in a `project` that it names."""

    name: Identifier
    role: Role
    expires_in_days: Annotated[float, msgspec.Meta(gt=0, le=3650)] | None = None
    project: Identifier | None = None


class NewKeyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The only time that the secret is shown."""

    id: UUID
    name: str
    role: Role
    key: str
    expires_at: datetime | None


class KeyLine(msgspec.Struct, frozen=True, kw_only=True):
    """A key without its secret."""

    id: UUID
    name: str
    role: Role
    prefix: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


class KeyList(msgspec.Struct, frozen=True, kw_only=True):
    """Newest first."""

    keys: list[KeyLine]


class ProjectRequest(Request, frozen=True, kw_only=True):
    """A new project."""

    name: Identifier


class ProjectLine(msgspec.Struct, frozen=True, kw_only=True):
    """A project of the installation."""

    name: str
    project: UUID
    created_at: datetime


class NewProjectAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """With its first key, of role owner, shown this once."""

    name: str
    project: UUID
    key: NewKeyAnswer


class ProjectList(msgspec.Struct, frozen=True, kw_only=True):
    """All of them, by name."""

    projects: list[ProjectLine]


class MeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Whose key this is."""

    key: UUID
    name: str
    role: Role
    project: str | None
    project_id: UUID | None


class LoginAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Opens the dashboard once."""

    token: str
    address: str
    expires_at: datetime


class ExchangeRequest(Request, frozen=True, kw_only=True):
    """The token of a login address."""

    token: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class SessionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A key for the time of a session."""

    key: str
    name: str
    role: Role
    project: str | None
    expires_at: datetime


class ReadyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Whether work is taken, why not, and what is done without."""

    ready: bool
    red: list[str]
    amber: list[str]


def rollouts_line(found: Rollouts | None) -> RolloutsLine | None:
    """As it is sent."""
    if found is None:
        return None
    rate = found.rate
    return RolloutsLine(scored=found.scored, paid=found.paid, standing=found.standing, rate=rate.mean, low=rate.low, high=rate.high)


def ruling(ruled: Ruled) -> Ruling:
    """As it is sent."""
    return Ruling(
        action=ruled.action,
        final=ruled.final,
        mode=ruled.mode,
        enforced=ruled.enforced,
        reward_override=ruled.reward_override,
        cause=ruled.cause,
        retry=ruled.retry,
        seq=ruled.seq,
        until=ruled.until,
    )
