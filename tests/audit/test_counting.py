"""What each trajectory is counted as: once, and by what stands for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from inspector import review
from inspector.amend import Amendment, amend
from inspector.check import Cause, Check, Finding, Tier, Trajectory, check
from inspector.review import JudgementOfPerson
from inspector.store import environments, work
from inspector.store.segments import SegmentReader
from inspector.store.session import driver, transaction
from inspector.task import Declaration, RewardDeclaration
from tests.audit.conftest import Desk, OpenDesk, episode


@check(version=1, tier=Tier.EVIDENCE, cause=Cause.POLICY_EXPLOIT)
def hacked(trajectory: Trajectory) -> Iterator[Finding]:
    """It hacked."""
    if "hack" in str(trajectory.steps[0].message):
        yield Finding(message="it did")


def opened(open_desk: OpenDesk) -> Desk:
    assert isinstance(hacked, Check)
    return open_desk(hacked.qualified("test"))


def reward_later(desk: Desk, id_: str, reward: float) -> None:
    with transaction(desk.engine) as session:
        amend(session, SegmentReader(desk.root), desk.project.id, desk.key(id_), Amendment(reward=reward))
    desk.audit()


def again(desk: Desk, *ids: str) -> None:
    with transaction(desk.engine) as session:
        work.add_trajectories(session, desk.project.id, [desk.key(id_) for id_ in ids])
    desk.audit()


def honest(desk: Desk) -> tuple[int, float]:
    with transaction(desk.engine) as session:
        [found] = environments.honest_means(session, desk.project.id, range(1, 9)).values()
    return found


def exploits(desk: Desk) -> int:
    with transaction(desk.engine) as session:
        row = driver(session).execute("SELECT sum(exploits)::int FROM task").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("reward", [0.75, 0.0])
def test_a_reward_that_comes_later_enters_the_honest_mean_once(desk: Desk, reward: float) -> None:
    desk.post(episode("a", reward=None, verifier=None), episode("b", reward=0.25, verifier=None))
    desk.audit()
    assert honest(desk) == (1, 0.25)
    reward_later(desk, "a", reward)
    assert honest(desk) == (2, 0.25 + reward)
    again(desk, "a", "b")
    assert honest(desk) == (2, 0.25 + reward)


def test_an_exploit_whose_reward_comes_later_is_counted_once(open_desk: OpenDesk) -> None:
    desk = opened(open_desk)
    desk.post(episode("a", says="hack", reward=None, verifier=None))
    desk.audit()
    assert exploits(desk) == 0, "it gained nothing yet"
    reward_later(desk, "a", 1.0)
    assert exploits(desk) == 1
    again(desk, "a")
    assert exploits(desk) == 1


def test_what_is_not_accepted_any_more_leaves_the_honest_mean(desk: Desk) -> None:
    desk.post(episode("a", says="the same", reward=1.0, verifier=None))
    desk.audit()
    assert honest(desk) == (1, 1.0)
    desk.post(episode("b", says="the same", reward=0.0, verifier=None))
    desk.audit()
    assert honest(desk) == (0, 0.0)


def test_overrides_that_leave_a_group_nothing_to_learn_from_are_counted_once(open_desk: OpenDesk) -> None:
    desk = opened(open_desk)
    desk.declare(Declaration(reward=RewardDeclaration(min=0, max=1, penalty_min=-9)))
    members: list[dict[str, Any]] = [
        episode(f"m{at}", says=f"hack {at}", group={"id": "g", "index": at, "size": 3}, reward=1.0, verifier=None) for at in range(3)
    ]
    desk.post(*members)
    desk.audit()
    assert exploits(desk) == 3
    again(desk, "m0")
    desk.audit()
    assert exploits(desk) == 3


def test_what_a_revoked_check_counted_is_taken_back(open_desk: OpenDesk) -> None:
    desk = opened(open_desk)
    desk.post(episode("a", says="hack", reward=0.5, verifier=None), episode("b", says="hack too", reward=None, verifier=None))
    desk.audit()
    assert exploits(desk) == 1
    with transaction(desk.engine) as session:
        review.revoke(session, desk.project.id, "test/hacked", 1, "mira", preview=False)
    assert (exploits(desk), honest(desk)) == (0, (1, 0.5))
    again(desk, "a", "b")
    assert (exploits(desk), honest(desk)) == (0, (1, 0.5))


@pytest.mark.parametrize(
    ("says", "judgement", "counts"),
    [
        ("hack", JudgementOfPerson.ACCEPT, (0, (1, 0.5))),
        ("hack", JudgementOfPerson.QUARANTINE, (1, (0, 0.0))),
        ("nothing", JudgementOfPerson.QUARANTINE, (0, (0, 0.0))),
        ("nothing", JudgementOfPerson.ACCEPT, (0, (1, 0.5))),
    ],
)
def test_what_a_person_judged_counts_by_their_word(open_desk: OpenDesk, says: str, judgement: JudgementOfPerson, counts: tuple[int, tuple[int, float]]) -> None:
    desk = opened(open_desk)
    desk.post(episode("a", says=says, reward=0.5, verifier=None))
    desk.audit()
    with transaction(desk.engine) as session:
        review.judge(session, desk.project.id, desk.key("a"), "mira", judgement, None, "")
    assert (exploits(desk), honest(desk)) == counts
    again(desk, "a")
    assert (exploits(desk), honest(desk)) == counts
