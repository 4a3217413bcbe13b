"""A verifier is repaired: what the broken one spoiled is graded again, given back with its new reward, and listed for a replay buffer."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from inspector import regrading
from inspector.errors import Unknown
from inspector.packing import pack
from inspector.sandbox.protocol import Backend
from inspector.store.segments import SegmentReader
from inspector.store.session import driver, transaction
from inspector.testing import envelope
from tests.api.conftest import House, open_house  # noqa: F401 -- a fixture
from tests.worker.test_replays import Bench

FAILED = {"exit_code": 1, "tests": {"collected": 3, "passed": 2, "failed": 1}}
RIGHT, WRONG = b"def add(n):\n    return n + 1\n", b"def add(n):\n    return n\n"


@pytest.fixture
def bench(open_house: Callable[..., House], boxes: Backend, tmp_path: Path) -> Bench:  # noqa: F811
    return Bench(open_house(), boxes, tmp_path / "room")


def register(bench: Bench, folder: Path, version: str, *tests: str) -> None:
    row = {"task_id": "add", "prompt": "Write add(n), which adds 1.", "reference": RIGHT.decode(), "tests": list(tests), "entry_point": "add"}
    path = folder / f"rows-{version}.jsonl"
    path.write_bytes(msgspec.json.encode(row) + b"\n")
    out = io.BytesIO()
    pack([path], out)
    bench.api.put(f"/v1/environments/acme/rows/versions/{version}/package", {"artifact": bench.upload(out.getvalue()), "face": "rows"})


def post(bench: Bench, id_: str, reward: float, state: bytes, step: int = 1, **more: Any) -> None:
    where = {"environment": {"id": "acme/rows", "version": "1"}, "task": {"id": "add"}, "run": {"id": "r", "step": step, "policy_version": step}}
    artifacts = [{"sha256": bench.upload(state), "role": "final_state"}]
    said = [{"step_id": 1, "source": "agent", "message": f"This is {id_}."}]
    bench.house.post(envelope(**{"id": id_, "reward": reward, "group": None, "verifier": FAILED, "artifacts": artifacts, "steps": said, **where, **more}))


def advance(bench: Bench) -> int:
    added = regrading.advance(bench.house.engine, SegmentReader(bench.house.settings.store_path))
    with transaction(bench.house.engine) as session:  # nothing else waits, so it need not wait for it either
        driver(session).execute("UPDATE replay SET due_at = clock_timestamp()")
    return added


def standing(bench: Bench, id_: str) -> tuple[str, float | None]:
    ruling = bench.api.look_up([id_]).decisions[id_]
    assert ruling is not None
    return ruling.action, ruling.reward_override


def test_what_a_broken_verifier_spoiled_comes_back_with_the_reward_of_the_repaired_one(bench: Bench, tmp_path: Path) -> None:
    register(bench, tmp_path, "1", "assert True")
    post(bench, "right", 1.0, RIGHT, step=3)
    post(bench, "wrong", 1.0, WRONG, step=5)
    post(bench, "stateless", 1.0, b"", artifacts=None)
    post(bench, "sound", 1.0, RIGHT, verifier=None)
    bench.audit()
    assert [standing(bench, id_)[0] for id_ in ("right", "wrong", "stateless", "sound")] == ["exclude", "exclude", "exclude", "keep"]
    register(bench, tmp_path, "2", "assert add(1) == 2")
    head = len(bench.feed())
    bench.api.regrade("acme/rows", "1", "2")
    assert (advance(bench), advance(bench)) == (2, 0)
    bench.work_off()
    bench.audit()
    assert (standing(bench, "right"), standing(bench, "wrong"), standing(bench, "stateless")) == (("keep", None), ("override_reward", 0.0), ("exclude", None))
    told = {d["trajectory"]: d for d in bench.feed(head)}
    assert {id_: (d["author"], d["supersedes"] is not None) for id_, d in told.items()} == dict.fromkeys(("right", "wrong"), ("regraded:acme/rows@2", True))
    assert told["wrong"]["reasons"][-1] == "its final state was graded again by acme/rows@2: 0"
    bench.house.call("POST", "/v1/runs/r/steps/6", {"policy_before": 6, "policy_after": 7})
    listed = {line["id"]: line for line in bench.api.recycled("r")}
    assert {id_: (line["posted"], line["reward"], line["policy_version"], line["staleness"]) for id_, line in listed.items()} == {
        "right": (1.0, 1.0, 3, 4),
        "wrong": (1.0, 0.0, 5, 2),
    }
    assert [line["id"] for line in bench.api.recycled("r", max_age_steps=2)] == ["wrong"]
    bench.house.call("POST", "/v1/runs/r/steps/7", {"policy_before": 7, "policy_after": 8, "used": [{"id": "wrong", "weight": 1.0, "reward": 0.0}]})
    assert [line["id"] for line in bench.api.recycled("r")] == ["right"], "the other was taken up"


def test_another_audit_says_the_same_again(bench: Bench, tmp_path: Path) -> None:
    register(bench, tmp_path, "1", "assert True")
    register(bench, tmp_path, "2", "assert add(1) == 2")
    post(bench, "wrong", 1.0, WRONG)
    bench.audit()
    bench.api.regrade("acme/rows", "1", "2", most=1)
    advance(bench)
    bench.work_off()
    for _ in range(2):
        with transaction(bench.house.engine) as session:
            driver(session).execute("INSERT INTO work (project, key) SELECT project, key FROM trajectory")
        bench.audit()
    assert [d["action"] for d in bench.feed() if d["scope"] == "trajectory"] == ["exclude", "override_reward"]


def test_only_an_owner_of_both_versions_may_say_so(bench: Bench, tmp_path: Path) -> None:
    register(bench, tmp_path, "1", "assert True")
    with transaction(bench.house.engine) as session, pytest.raises(Unknown):
        regrading.ask(session, 1, "acme/rows", "1", "2", 10)
    bench.house.post(envelope(id="theirs", environment={"id": "acme/rows", "version": "1"}), holder="other-trainer")
    answer = bench.house.call("POST", "/v1/environments/acme/rows/versions/1/regrade", {"by": "1"}, holder="other-owner")
    assert answer.status_code == 403
