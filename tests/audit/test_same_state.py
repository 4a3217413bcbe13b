"""Free replays: the same final state, graded by the same verifier, with another reward."""

from __future__ import annotations

from typing import Any

import pytest

from inspector.amend import Amendment, amend
from inspector.audit import look_back
from inspector.store import look_backs
from inspector.store.segments import SegmentReader
from inspector.store.session import transaction
from inspector.trajectory import ArtifactRef
from inspector.verdict import Action, Cause
from tests.audit.conftest import Desk, episode

SHA256 = "ab" * 32


def left(id_: str, reward: float | None, sha256: str = SHA256, **fields: Any) -> dict[str, Any]:
    return episode(id_, reward=reward, verifier=None, artifacts=[{"sha256": sha256, "role": "final_state"}], **fields)


def told(desk: Desk, *ids: str) -> list[tuple[Action, Cause | None]]:
    return [(one.action, one.cause) for one in map(desk.stored, ids)]


OUT, IN = (Action.EXCLUDE, Cause.VERIFIER_DEFECT), (Action.KEEP, None)


@pytest.mark.parametrize("together", [True, False], ids=["in one block", "one after the other"])
def test_both_are_excluded_whatever_came_first_and_the_feed_tells_of_it(desk: Desk, together: bool) -> None:
    pair = [left("a", 1.0), left("b", 0.0)]
    for block in [pair] if together else [[one] for one in pair]:
        desk.post(*block)
        desk.audit()
    desk.audit()
    assert told(desk, "a", "b") == [OUT, OUT]
    assert {d.trajectory for d in desk.feed() if d.action is Action.EXCLUDE} == {"a", "b"}
    assert desk.audit() == 0, "it ends"


def test_only_what_is_comparable_is_compared(desk: Desk) -> None:
    desk.post(
        left("a", 1.0),
        left("same reward", 1.0),
        left("not scored", None),
        left("another state", 0.0, "cd" * 32),
        left("another task", 0.0, task={"id": "fix-dns"}),
        left("another version", 0.0, environment={"id": "acme/terminal", "version": "2"}),
        left("another verifier", 0.0, environment={"id": "acme/terminal", "version": "1", "verifier_digest": "sha256:2"}),
        left("cut", 0.0, termination={"reason": "max_steps", "truncated": True}),
    )
    desk.audit()
    assert desk.feed() == []


def test_the_one_that_differs_is_found_behind_many_that_agree(desk: Desk) -> None:
    for at in range(12):
        desk.post(left(f"m{at}", 0.0))
        desk.audit()
    desk.post(left("odd", 1.0))
    desk.audit()
    desk.audit()
    assert told(desk, "odd", "m0", "m11") == [OUT] * 3
    assert desk.audit() == 0, "it ends"


def test_a_state_that_is_attached_later_tells_the_earlier_ones(desk: Desk) -> None:
    desk.post(left("a", 1.0), episode("b", reward=0.0, verifier=None))
    desk.audit()
    change(desk, "b", Amendment(artifacts=[ArtifactRef(sha256=SHA256, role="final_state")]))
    desk.audit()
    desk.audit()
    assert told(desk, "a", "b") == [OUT, OUT]
    assert desk.audit() == 0, "it ends"


def test_a_reward_that_comes_later_tells_the_earlier_ones(desk: Desk) -> None:
    desk.post(left("a", 1.0), left("b", None))
    desk.audit()
    change(desk, "b", Amendment(reward=0.0))
    desk.audit()
    assert told(desk, "a", "b") == [IN, OUT]
    with transaction(desk.engine) as session:
        look_back.keep(session, look_backs.left(session, 0))  # as the sweep does
    desk.audit()
    assert told(desk, "a", "b") == [OUT, OUT]


def change(desk: Desk, id_: str, amendment: Amendment) -> None:
    key = desk.key(id_)
    with transaction(desk.engine) as session:
        amend(session, SegmentReader(desk.root), desk.project.id, key, amendment)
