"""Final states that are graded again: sampled by audits, graded by the worker's code in real boxes, and told to who follows."""

from __future__ import annotations

import hashlib
import io
import math
import random
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from inspector import catalog, policy, replaying
from inspector.assignments import ReplayReport
from inspector.audit import Auditor, Pace
from inspector.audit.sampling import Shares, place
from inspector.client import Api
from inspector.keys import new_keys
from inspector.packing import pack
from inspector.sandbox.protocol import Backend
from inspector.store.segments import SegmentReader
from inspector.store.session import driver, transaction
from inspector.testing import envelope
from inspector.worker.prober import Prober
from tests.api.conftest import House, open_house  # noqa: F401 -- a fixture

VERSION = "/v1/environments/acme/rows/versions/1"
ANSWER = b"def add(n):\n    return n + 1\n"


class Through(httpx.BaseTransport):
    """Calls the application of a house."""

    def __init__(self, house: House) -> None:
        self._client = house.client

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        said = self._client.request(request.method, str(request.url), content=request.read(), headers=dict(request.headers))
        return httpx.Response(said.status_code, headers=dict(said.headers), content=said.content)


class Bench:
    """A house, an auditor that samples everything unless told otherwise, and a worker."""

    def __init__(self, house: House, boxes: Backend, room: Path) -> None:
        self.house = house
        self.api = Api("http://testserver", house.keys["acme-owner"], transport=Through(house))
        prober = Api("http://testserver", house.keys["prober"], transport=Through(house))
        self.worker = Prober(prober, boxes, room)

    def audit(self, shares: Shares = Shares(1.0, 1.0)) -> int:  # noqa: B008 -- it is frozen
        reader = SegmentReader(self.house.settings.store_path)
        pace = Pace(replays=shares)
        return Auditor(self.house.engine, reader, catalog.load(), policy.load(), pace, wake=lambda _: None, watch=lambda _: None, alarms=False).drain()

    def upload(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self.api.upload(f"/v1/artifacts/{digest}", [data])
        return digest

    def register(self, path: Path, face: str) -> None:
        out = io.BytesIO()
        pack([path], out)
        self.api.put(f"{VERSION}/package", {"artifact": self.upload(out.getvalue()), "face": face})

    def post(self, id_: str, task: str, reward: float | None, state: str) -> str:
        where = {"environment": {"id": "acme/rows", "version": "1"}, "task": {"id": task}, "artifacts": [{"sha256": state, "role": "final_state"}]}
        step = {"step_id": 1, "source": "agent", "message": f"This is {id_}."}
        [receipt] = self.house.post(envelope(id=id_, reward=reward, group=None, run=None, verifier=None, steps=[step], **where))
        return str(receipt["key"])

    def work_off(self) -> None:
        while self.worker.drain(60.0):
            pass

    def rows(self) -> list[tuple[Any, ...]]:
        with transaction(self.house.engine) as session:
            return driver(session).execute("SELECT posted, wanted, rewards, note, closed_at IS NOT NULL FROM replay ORDER BY id").fetchall()

    def feed(self, after: int = 0) -> list[dict[str, Any]]:
        return list(self.api.decisions(after=after)["decisions"])


@pytest.fixture
def bench(open_house: Callable[..., House], boxes: Backend, tmp_path: Path) -> Bench:  # noqa: F811
    room = tmp_path / "room"
    return Bench(open_house(), boxes, room)


def task(name: str, chance: float) -> dict[str, Any]:
    """A task whose verifier refuses what is right with this chance."""
    tests = ["import random", f"assert random.random() >= {chance}", "assert add(1) == 2"]
    return {"task_id": name, "prompt": "Write add(n), which adds 1.", "reference": ANSWER.decode(), "tests": tests, "entry_point": "add"}


def write_rows(folder: Path, **chances: float) -> Path:
    path = folder / "rows.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(task(name, chance)) + b"\n" for name, chance in chances.items()))
    return path


def test_what_is_sound_stays_and_what_flips_is_told_to_who_follows(bench: Bench, tmp_path: Path) -> None:
    bench.register(write_rows(tmp_path, sound=0.0, flips=0.6), "rows")
    states = [bench.upload(ANSWER + b"#" * at) for at in range(8)]
    for at, state in enumerate(states):
        bench.post(f"flips-{at}", "flips", 1.0, state)
    for at, state in enumerate(states[:3]):
        bench.post(f"sound-{at}", "sound", 1.0, state)
    bench.post("wrong", "sound", 0.0, bench.upload(b"def add(n):\n    return n\n"))
    bench.post("not scored", "sound", None, states[0])
    bench.audit()
    seen = bench.api.decisions()["seq"]
    assert bench.feed() == []
    bench.work_off()
    assert bench.audit() == 12
    assert sorted({wanted for _, wanted, *_ in bench.rows()}) == [1, 9]
    assert all(closed and len(rewards) == wanted and note == "" for _, wanted, rewards, note, closed in bench.rows())
    told = bench.feed(after=seen)
    excluded = [d for d in told if d["scope"] == "trajectory"]
    assert excluded
    assert all((d["action"], d["cause"], d["task"]) == ("exclude", "verifier_defect", "flips") for d in excluded)
    assert len(excluded) == sum(wanted == 9 for _, wanted, *_ in bench.rows())
    [moved] = [d for d in told if d["action"] == "set_state"]
    assert (moved["task"], moved["state"]) == ("flips", "watch")
    assert any("flaky" in reason for reason in moved["reasons"])
    findings = bench.api.trajectory(excluded[0]["key"])["findings"]
    assert "graded again with" in next(f["message"] for f in findings if f["check"] == "builtin/replay_disagrees")
    assert bench.audit() == 0, "it ends"


def test_what_no_box_can_grade_is_not_assessed(bench: Bench, tmp_path: Path) -> None:
    bench.register(write_rows(tmp_path, sound=0.0), "rows")
    key = bench.post("a", "gone", 0.0, bench.upload(ANSWER))
    bench.audit()
    bench.work_off()
    bench.audit()
    [(_, wanted, rewards, note, closed)] = bench.rows()
    assert (wanted, rewards, closed) == (1, [], True)
    assert "there is no task 'gone'" in note
    assert bench.feed() == []
    coverage = bench.api.trajectory(key)["coverage"]
    assert "there is no task" in str(coverage)


def harbor(folder: Path) -> Path:
    files = {
        "task.toml": 'schema_version = "1.4"\n\n[agent]\ntimeout_sec = 60.0\n\n[verifier]\ntimeout_sec = 60.0\n',
        "instruction.md": "Write 42 to /app/sum.txt.\n",
        "environment/Dockerfile": "FROM python:3.11-slim\nWORKDIR /app\n",
        "solution/solve.sh": "#!/bin/bash\necho 42 > /app/sum.txt\n",
        "tests/test.sh": '#!/bin/bash\nif [ "$(cat /app/sum.txt)" = 42 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n',
    }
    for path, text in files.items():
        target = folder / "sum" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return folder / "sum"


def tar(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for member, data in members:
            member.size = len(data)
            made.addfile(member, io.BytesIO(data))
    return out.getvalue()


def link(name: str, target: str) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = tarfile.SYMTYPE, target
    return made


def test_files_that_were_left_are_put_in_their_place_and_hostile_ones_nowhere(bench: Bench, tmp_path: Path) -> None:
    bench.register(harbor(tmp_path), "harbor")
    right = bench.upload(tar((tarfile.TarInfo("app/sum.txt"), b"42\n")))
    bench.post("right", "sum", 1.0, right)
    bench.post("wrong", "sum", 0.0, bench.upload(tar((tarfile.TarInfo("app/sum.txt"), b"41\n"))))
    for name, member in {"leaves": tarfile.TarInfo("../../escaped"), "link": link("app/sum.txt", "/etc/passwd")}.items():
        bench.post(name, "sum", 1.0, bench.upload(tar((member, b""))))
    bench.post("no tar", "sum", 1.0, bench.upload(b"no tar"))
    bench.audit()
    bench.work_off()
    bench.audit()
    assert [list(rewards) for _, _, rewards, *_ in bench.rows()] == [[1.0], [0.0], [], [], []]
    assert all("the package" in note for *_, note, _ in bench.rows()[2:])
    assert bench.feed() == []
    assert not list(tmp_path.rglob("escaped"))


def test_only_a_share_is_graded_again_and_always_the_same() -> None:
    keys = new_keys(20_000)
    chosen = [key for key in keys if place(key) < 0.05]
    assert abs(len(chosen) - 1000) < 5 * math.sqrt(950)
    assert chosen == [key for key in keys if place(key) < 0.05]


def test_what_has_no_package_or_no_state_here_is_not_sampled(bench: Bench, tmp_path: Path) -> None:
    bench.post("no package", "sound", 1.0, bench.upload(ANSWER))
    bench.audit()
    bench.register(write_rows(tmp_path, sound=0.0), "rows")
    bench.post("not uploaded", "sound", 1.0, "ab" * 32)
    bench.post("paid", "sound", 1.0, bench.upload(ANSWER))
    bench.audit(Shares(0.0, 1.0))
    assert bench.rows() == []


def test_a_worker_that_dies_costs_no_reward(bench: Bench, tmp_path: Path) -> None:
    bench.register(write_rows(tmp_path, sound=0.0), "rows")
    bench.post("a", "sound", 1.0, bench.upload(ANSWER))
    bench.audit()
    for _ in range(3):
        assert bench.house.call("POST", "/v1/probe-work", holder="prober").json()["replay"]["times"] == 1
        with transaction(bench.house.engine) as session:
            driver(session).execute("UPDATE replay SET until = now() - interval '1 s'")
    assert bench.house.call("POST", "/v1/probe-work", holder="prober").status_code == 204
    assert bench.rows() == [(1.0, 1, [], "its worker died three times", True)]


def test_a_report_must_be_an_answer_to_what_was_asked(bench: Bench, tmp_path: Path) -> None:
    bench.register(write_rows(tmp_path, sound=0.0), "rows")
    bench.post("a", "sound", 1.0, bench.upload(ANSWER))
    bench.audit()
    work = bench.house.call("POST", "/v1/probe-work", holder="prober").json()
    address = f"/v1/replay-work/{work['work']}/report"
    for said in ({"rewards": []}, {"rewards": [1.0, 1.0]}, {"rewards": [1.0], "failure": "none"}):
        assert bench.house.call("POST", address, said, "prober", lease=work["lease"]).status_code == 422
    assert bench.house.call("POST", address, {"rewards": [1.0]}, "prober", lease=work["lease"] + 1).status_code == 409
    assert bench.house.call("POST", address, {"rewards": [1.0]}, "acme-owner", lease=work["lease"]).status_code == 403
    assert bench.house.call("POST", address, {"rewards": [1.0]}, "prober", lease=work["lease"]).json()["state"] == "closed"


CHANCES = {"sound": 0.0, "rarely": 0.02, "sometimes": 0.1, "often": 0.5}


def post_states(bench: Bench, count: int, paid: Callable[[str], float]) -> None:
    for at in range(count):
        state = bench.upload(ANSWER + b"#" * at)
        for name in CHANCES:
            bench.post(f"{name}-{at}", name, paid(name), state)
    bench.audit()


def told_of(bench: Bench) -> tuple[dict[str, int], set[str]]:
    """How many states of each task were excluded, and which tasks are on watch."""
    bench.audit()
    told = list(bench.api.decisions(limit=1000)["decisions"])
    excluded = [d["task"] for d in told if d["scope"] == "trajectory" and d["action"] == "exclude"]
    return {name: excluded.count(name) for name in CHANCES}, {d["task"] for d in told if d["action"] == "set_state"}


@pytest.mark.slow
def test_of_200_states_in_boxes_those_of_flaky_verifiers_are_named_and_sound_ones_never(bench: Bench, tmp_path: Path) -> None:
    bench.register(write_rows(tmp_path, **CHANCES), "rows")
    post_states(bench, 50, lambda _: 1.0)
    bench.work_off()
    excluded, named = told_of(bench)
    print(excluded, named)
    assert excluded["sound"] == 0
    assert 10 <= excluded["often"] <= 40
    assert named <= {"rarely", "sometimes", "often"}
    assert "often" in named


@pytest.mark.slow
def test_the_share_that_is_named_grows_with_what_is_replayed(bench: Bench, tmp_path: Path) -> None:
    """Of 200 states of each verifier, whose draws are seeded; a draw stands in for the box."""
    rng = random.Random(7)
    bench.register(write_rows(tmp_path, **CHANCES), "rows")
    post_states(bench, 200, lambda name: float(rng.random() >= CHANCES[name]))
    spent, named_at = dict.fromkeys(CHANCES, 0), dict[str, int]()
    while True:
        with transaction(bench.house.engine) as session:
            work = replaying.claim(session, 30.0)
            if work is None:
                break
            assert work.task is not None
            assert work.replay is not None
            spent[work.task] += work.replay.times
            rewards = [float(rng.random() >= CHANCES[work.task]) for _ in range(work.replay.times)]
            replaying.report(session, work.work, work.lease, ReplayReport(rewards=rewards))
            if len(set(rewards)) > 1:
                named_at.setdefault(work.task, spent[work.task])
    excluded, named = told_of(bench)
    print({name: (excluded[name], spent[name], named_at.get(name)) for name in CHANCES})
    assert (excluded["sound"], spent["sound"]) == (0, 200)
    assert named == {"rarely", "sometimes", "often"}
    assert excluded["rarely"] < excluded["sometimes"] < excluded["often"]
    assert named_at["often"] <= 20
    assert named_at["sometimes"] <= 100
