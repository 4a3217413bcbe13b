"""What answers about contaminated runs look like."""

from __future__ import annotations

from uuid import UUID

import msgspec

from inspector.verdict import Action, Cause


class EnvironmentShare(msgspec.Struct, frozen=True, kw_only=True):
    """What a run used of the bad trajectories of one environment version."""

    environment: str
    version: str
    rows: int
    trajectories: int
    groups: int
    updates: int
    first_step: int
    mass: float  # absolute reward that they carried, weighted


class ContaminationSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Of a whole run, under one choice of what is bad."""

    updates: int  # that were told
    rows: int  # with a weight, in all of them
    mass: float
    unknown: int  # rows of trajectories that were never posted
    bad_rows: int
    bad_trajectories: int
    bad_groups: int
    bad_mass: float
    direct_updates: int  # that used something bad
    affected_updates: int  # those, and all that descend from them
    affected_versions: int  # policy versions that those made
    first_step: int | None  # the first that used something bad
    last_clean: int | None  # the policy version that it began from
    newest_is_clean: bool  # the newest version descends from no update that used something bad
    environments: list[EnvironmentShare]


class ContaminatedUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """An update that used something bad, or descends from one that did."""

    step: int
    attempt: str
    policy_before: int
    policy_after: int
    checkpoint: str | None
    rows: int
    mass: float
    unknown: int
    bad_rows: int
    bad_trajectories: int
    bad_mass: float
    share: float  # bad_mass of mass; 0 where the update had none
    inherited: bool  # it began from a version that was contaminated already


class ContaminationPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page, in the order in which the updates were told; every page has the summary of the whole run."""

    run: str
    summary: ContaminationSummary
    updates: list[ContaminatedUpdate]
    next: str | None


class ContaminatedUse(msgspec.Struct, frozen=True, kw_only=True):
    """One use of one trajectory; of one that was never posted, what the trainer said is all there is."""

    step: int
    id: str
    key: UUID | None
    group: str | None
    environment: str | None
    version: str | None
    task: str | None
    weight: float
    reward: float | None  # as it was used
    action: Action | None  # as it stands now
    cause: Cause | None
    reward_override: float | None


class ContaminatedUsePage(msgspec.Struct, frozen=True, kw_only=True):
    """One page, in the order of the updates."""

    run: str
    uses: list[ContaminatedUse]
    next: str | None
