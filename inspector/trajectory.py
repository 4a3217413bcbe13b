"""The record of one episode: an ATIF document inside an envelope that says where it came from and what it was paid.

The structs are the one definition of the wire: they decode, validate and give the JSON Schema. `Envelope` is what the
door reads (the document stays raw), `Posted` is the same with the document typed, and `Trajectory` is what checks see.
Envelope names follow verifiers v1, the document is ATIF 1.0 to 1.8 as agent harnesses write it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import msgspec

# No control characters (C0, DEL, C1, line and paragraph separators): an identifier is printed, logged and put in URLs.
NO_CONTROLS = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*\Z"
Identifier = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=NO_CONTROLS)]
OptionalText = Annotated[str, msgspec.Meta(max_length=200, pattern=NO_CONTROLS)] | None
Number = Annotated[float, msgspec.Meta(description="finite")]
Timestamp = Annotated[datetime, msgspec.Meta(tz=True)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Whole = Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)]
Sha256 = Annotated[str, msgspec.Meta(pattern=r"^(sha256:)?[0-9a-f]{64}\Z")]


class Work(StrEnum):
    """What the rollout was made for."""

    TRAIN = "train"
    EVAL = "eval"
    PROBE = "probe"


class Boundary(StrEnum):
    """Where an error arose."""

    PROVIDER = "provider"
    HARNESS = "harness"
    TOOL = "tool"
    SANDBOX = "sandbox"
    TASK = "task"
    VERIFIER = "verifier"


class EnvironmentRef(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Which environment version the episode ran in."""

    id: Identifier  # team/name
    version: Identifier
    verifier_digest: OptionalText = None


class TaskRef(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Which of its tasks."""

    id: Identifier
    hash: OptionalText = None


class GroupRef(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The rollouts of one task under one policy version that are ranked against each other."""

    id: Identifier
    index: Count | None = None
    size: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None


class RunRef(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The training run that made it."""

    id: Identifier
    trainer: OptionalText = None
    work: Work = Work.TRAIN
    step: Whole | None = None
    policy_version: Whole | None = None


class Reward(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One component of the reward; a score of None was not scored, which is not a score of 0."""

    score: Number | None = None
    weight: Number | None = None


class Termination(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How the episode ended."""

    reason: OptionalText = None  # completed | submitted | max_steps | max_tokens | timeout | error | cancelled, or free text
    truncated: bool | None = None  # cut by a step, token or time limit: the reward may speak of the limit, not of the policy
    timed_out: bool | None = None


class EpisodeError(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Something that broke, and on which side of which boundary."""

    type: OptionalText = None
    boundary: Boundary | None = None
    message: str | None = None


class TestCounts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the verifier's test runner counted."""

    __test__ = False  # not a test class, whatever its name says to pytest

    collected: Count | None = None
    passed: Count | None = None
    failed: Count | None = None
    errors: Count | None = None  # at collection or set-up
    skipped: Count | None = None


class VerifierReport(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The verifier's own account of how it came to the reward."""

    exit_code: Whole | None = None
    tests: TestCounts | None = None
    stdout: str | None = None
    duration_s: Annotated[float, msgspec.Meta(ge=0)] | None = None
    timed_out: bool | None = None


class ArtifactRef(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A file of the episode, uploaded on its own by its digest."""

    name: OptionalText = None
    sha256: Sha256
    role: OptionalText = None  # final_state | diff | test_log | verifier_stdout | screenshot, or free text


class Tokens(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Token arrays, equally long: base64 of little-endian i32, u8 and f32; spans are [step, start, end)."""

    ids: str | None = None
    loss_mask: str | None = None
    logprobs: str | None = None
    spans: list[tuple[int, int, int]] | None = None


class Header(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Everything of the envelope but the document itself."""

    id: Identifier
    environment: EnvironmentRef
    task: TaskRef
    reward: Number | None
    group: GroupRef | None = None
    run: RunRef | None = None
    rewards: dict[str, Reward | None] | None = None
    termination: Termination | None = None
    errors: list[EpisodeError] | None = None
    verifier: VerifierReport | None = None
    artifacts: list[ArtifactRef] | None = None
    sampled: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None  # the rate at which whole groups were sampled for audit
    seed: Whole | None = None
    started_at: Timestamp | None = None
    ended_at: Timestamp | None = None
    tokens: Tokens | None = None
    extra: dict[str, Any] | None = None


class Envelope(Header, frozen=True, kw_only=True, gc=False):
    """What the door decodes: the document stays as it was sent."""

    trajectory: msgspec.Raw


# --- the ATIF document -----------------------------------------------------------------------------------------------


class Source(StrEnum):
    """Who a step came from."""

    SYSTEM = "system"
    USER = "user"
    AGENT = "agent"


class ContentPart(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A piece of a multimodal message; `source` is {media_type, path}, and is never opened by us."""

    type: str
    text: str | None = None
    source: dict[str, Any] | None = None


Content = str | list[ContentPart] | None


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One action that the agent asked for."""

    tool_call_id: str
    function_name: str
    arguments: dict[str, Any]
    extra: dict[str, Any] | None = None


class ObservationResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What came back from one action."""

    source_call_id: str | None = None
    content: Content = None
    subagent_trajectory_ref: list[dict[str, Any]] | None = None
    extra: dict[str, Any] | None = None


class Observation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What came back in this step."""

    results: list[ObservationResult]


class Step(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A system prompt, a user message, or one turn of the agent with what came back."""

    step_id: int
    source: Source
    message: Content = None
    timestamp: str | None = None
    model_name: str | None = None
    reasoning_effort: str | float | None = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None
    observation: Observation | None = None
    metrics: dict[str, Any] | None = None
    llm_call_count: int | None = None
    is_copied_context: bool | None = None  # repeated by compaction: neither counted nor scanned a second time
    extra: dict[str, Any] | None = None


class Agent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The harness and the model that acted."""

    name: str
    version: str | None = None
    model_name: str | None = None
    tool_definitions: list[dict[str, Any]] | None = None
    extra: dict[str, Any] | None = None


class Document(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An ATIF trajectory."""

    schema_version: str | None = None
    session_id: str | None = None
    trajectory_id: str | None = None
    agent: Agent | None = None
    steps: list[Step] = []
    notes: str | None = None
    final_metrics: dict[str, Any] | None = None
    continued_trajectory_ref: str | None = None
    subagent_trajectories: list[msgspec.Raw] | None = None
    extra: dict[str, Any] | None = None


class Posted(Header, frozen=True, kw_only=True, gc=False):
    """A whole posted line, typed; the schema that the OpenAPI page shows."""

    trajectory: Document


# --- what checks see -------------------------------------------------------------------------------------------------


class Defect(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A rule of the record that a posted line breaks, found after it was acknowledged."""

    path: str  # as `$.trajectory.steps[3].tool_calls`
    message: str
    grave: bool = False  # the reward, the group or the tokens are wrong: not only untidy


class Trajectory:
    """One recorded episode, decoded once for all checks. Attributes of the envelope read through: `trajectory.reward`."""

    __slots__ = ("__weakref__", "defects", "document", "header", "key", "unknown")

    def __init__(self, header: Header, document: Document, *, defects: Sequence[Defect] = (), unknown: Sequence[str] = (), key: str = "") -> None:
        self.header = header
        self.document = document
        self.defects = tuple(defects)
        self.unknown = tuple(unknown)  # paths of fields that we keep but do not know
        self.key = key  # our own id (UUIDv7), empty where nothing was stored

    def __repr__(self) -> str:
        return f"Trajectory({self.header.id!r}, {len(self.document.steps)} steps, reward={self.header.reward})"

    @property
    def id(self) -> str:
        """The producer's id."""
        return self.header.id

    @property
    def environment(self) -> EnvironmentRef:
        return self.header.environment

    @property
    def task(self) -> TaskRef:
        return self.header.task

    @property
    def group(self) -> GroupRef | None:
        return self.header.group

    @property
    def run(self) -> RunRef | None:
        return self.header.run

    @property
    def reward(self) -> float | None:
        """None was not scored; 0.0 was scored zero."""
        return self.header.reward

    @property
    def rewards(self) -> dict[str, Reward | None]:
        return self.header.rewards or {}

    @property
    def termination(self) -> Termination:
        return self.header.termination or _NO_TERMINATION

    @property
    def errors(self) -> list[EpisodeError]:
        return self.header.errors or []

    @property
    def verifier(self) -> VerifierReport | None:
        return self.header.verifier

    @property
    def tokens(self) -> Tokens | None:
        return self.header.tokens

    @property
    def steps(self) -> list[Step]:
        return self.document.steps

    @property
    def own_steps(self) -> Iterator[tuple[int, Step]]:
        """(position, step) of the steps that compaction did not copy from earlier ones."""
        return ((at, step) for at, step in enumerate(self.document.steps) if not step.is_copied_context)


_NO_TERMINATION = Termination()


def text_of(content: Content) -> str:
    """The text of a message or an observation; images and sound have none."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.text for part in content if part.text)
