"""Workers that are killed, or stopped past their lease: no subject is lost and none is judged twice."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from inspector.audit import Pace
from inspector.verdict import Action
from tests.audit.conftest import FAILED, Desk, episode
from tests.faults.fleet import Fleet, address, scalar, until

PACE = Pace(lease_s=1.0, heartbeat_s=0.3, deadline_s=5.0, block=40)
GROUP = 8


def subject(number: int) -> dict[str, Any]:
    """One in three is paid although its tests failed; every second belongs to a group of eight."""
    group = {"id": f"g{number // 2 // GROUP}", "index": number // 2 % GROUP, "size": GROUP} if number % 2 else None
    return episode(f"s{number}", group=group, run={"id": "r"}, verifier=FAILED if number % 3 == 0 else {"exit_code": 0})


@pytest.mark.parametrize(("subjects", "moments", "seed"), [pytest.param(512, 4, 1, id="a few"), pytest.param(5376, 24, 2, id="many", marks=pytest.mark.slow)])
def test_none_is_lost_and_none_is_judged_twice(desk: Desk, subjects: int, moments: int, seed: int) -> None:
    rng = random.Random(seed)
    url = address(desk)
    fleet = Fleet(desk, PACE, 4)
    try:
        share = subjects // moments
        for moment in range(moments):
            desk.post(*(subject(n) for n in range(moment * share, (moment + 1) * share)))
            until(lambda: scalar(url, "SELECT count(*) > 0 OR NOT EXISTS (SELECT FROM work) FROM work WHERE claims > 0"), 120, "a block is leased")
            fleet.strike(rng)
        until(lambda: scalar(url, "SELECT NOT EXISTS (SELECT FROM work)"), 240, "everything is audited")
    finally:
        fleet.end()
    assert fleet.killed
    assert fleet.stopped
    _check(desk, url, share * moments)


def _check(desk: Desk, url: str, subjects: int) -> None:
    assert scalar(url, "SELECT count(*) FROM trajectory JOIN verdict USING (key)") == scalar(url, "SELECT count(*) FROM verdict") == subjects
    feed = desk.feed()
    assert [d.seq for d in feed] == list(range(1, len(feed) + 1))
    first = Counter(d.trajectory for d in feed if d.supersedes is None)
    assert max(first.values()) == 1, "one decision each, unless it supersedes"
    faulty = {f"s{n}" for n in range(0, subjects, 3)}
    assert faulty <= set(first)
    assert all(d.action is Action.EXCLUDE for d in feed)
    assert scalar(url, "SELECT count(*) FROM verdict WHERE action = 1") == len(first)
    # Whatever a closing transaction counts was counted once.
    assert scalar(url, "SELECT honest FROM project_environment") == scalar(url, "SELECT count(*) FROM verdict WHERE verdict = 1") == subjects - len(faulty)
    assert scalar(url, "SELECT count(*) FROM rollout_group WHERE audited <> size OR NOT closed") == 0
    assert scalar(url, "SELECT count(*) FROM verdict WHERE NOT final") == 0
