"""A trajectory that kills its worker, and checks that hang in C: each is named, costs its block the deadline at most, and holds nobody else up.

The check that does it is a stranger's: it comes in by an entry point, in real Celery workers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import distributions
from pathlib import Path

import pytest

from inspector import catalog, queue
from inspector.audit import selected
from inspector.check import Check
from inspector.embedded import Stack
from inspector.embedded import redis as embedded_redis
from inspector.intake import Intake, Project
from inspector.queue import Doorbell
from inspector.settings import Limits, Settings
from inspector.store import projects, selections
from inspector.store.segments import SegmentWriter
from inspector.store.session import connect, transaction
from inspector.verdict import Outcome, Scope, Verdict
from tests.audit.conftest import FAILED, Desk, episode
from tests.faults.fleet import address, scalar, until

STRANGE = '''
"""Checks of another team."""

import ctypes
import itertools
import os
import time
from collections.abc import Iterator

from inspector.check import Cause, Finding, Tier, Trajectory, check


@check(version=1, tier=Tier.ACTION, cause=Cause.POLICY_EXPLOIT)
def treacherous(trajectory: Trajectory) -> Iterator[Finding]:
    """Some subjects are too much for it."""
    said = str(trajectory.steps[0].message)
    if "poison" not in said:
        return
    with open(os.environ["POISON_LOG"], "a") as log:
        log.write(f"{os.getpid()} {time.time()}\\n")
    if "exit" in said:
        os._exit(3)
    if "crash" in said:
        ctypes.string_at(0)
    if "sleep" in said:
        ctypes.PyDLL(None).sleep(600)  # holds the interpreter's lock, so no other thread and no Python signal handler runs
    if "spin" in said:
        sum(itertools.repeat(0))  # never comes back to the interpreter
    yield Finding(message="never reached")
'''
POISONS = {"exit": "exit status 3", "crash": "killed by SIGSEGV", "sleep": "killed by SIGALRM", "spin": "killed by SIGALRM"}
OTHERS = 300


@pytest.fixture
def strangers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Check]:
    """An installed distribution with that check, on the path of this process and of those that it starts."""
    site = tmp_path / "site"
    (site / "strange_checks-1.dist-info").mkdir(parents=True)
    (site / "strange_checks-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: strange-checks\nVersion: 1\n")
    (site / "strange_checks-1.dist-info" / "entry_points.txt").write_text(f"[{catalog.GROUP}]\nstrangers = strange_checks\n")
    (site / "strange_checks.py").write_text(STRANGE)
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.setenv("POISON_LOG", str(tmp_path / "poison.log"))
    [distribution] = distributions(path=[str(site)])
    found = catalog.read(distribution.entry_points)
    assert not found.broken
    return dict(found.checks)


class Deaths:
    """Watches the processes that touched poison: how long each lived after it."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self.lived: dict[tuple[int, float], float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Deaths:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def first(self) -> float:
        return min((at + lived for (_, at), lived in self.lived.items()), default=time.time())

    def _watch(self) -> None:
        while not self._stop.wait(0.05):
            touched = [tuple(row.split()) for row in self._log.read_text().splitlines()] if self._log.exists() else []
            for pid, at in touched:
                touch = (int(pid), float(at))
                if touch not in self.lived and not _running(touch[0]):
                    self.lived[touch] = time.time() - touch[1]


def _running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextmanager
def desk_on(stack: Stack, checks: dict[str, Check]) -> Iterator[Desk]:
    engine = connect(stack.database_url)
    chosen = tuple(checks[name] for name in sorted(checks))
    with transaction(engine) as session:
        uuid = projects.create(session, "alpha")
        project = Project(projects.by_name(session, "alpha")[0], uuid)
        selection = selections.ensure(session, selected(chosen))
    root = stack.settings.store_path
    bell = Doorbell(queue.application(stack.settings), stack.settings.redis_url)
    try:
        with SegmentWriter(root, max_bytes=1 << 28) as writer:
            yield Desk(engine, root, chosen, project, Intake(engine, writer, bell, selection, Limits()))
    finally:
        engine.dispose()


@pytest.mark.parametrize(
    ("pace", "poisons"),
    [
        pytest.param(Settings(lease_s=2.0, heartbeat_s=0.5, fast_deadline_s=2.0, sweep_s=1.0), ["exit", "sleep"], id="short leases"),
        pytest.param(Settings(), list(POISONS), id="default settings", marks=pytest.mark.slow),
    ],
)
def test_poison_is_named_and_all_others_have_their_verdicts(strangers: dict[str, Check], tmp_path: Path, pace: Settings, poisons: list[str]) -> None:
    if embedded_redis.binary() is None:
        pytest.skip("no Redis here")
    installed = dict(catalog.load().checks) | strangers
    with (
        Stack(tmp_path / "data", parts={"postgres", "redis", "migrations", "worker", "beat"}, settings=pace) as stack,
        desk_on(stack, installed) as desk,
        Deaths(tmp_path / "poison.log") as deaths,
    ):
        _post(desk, poisons)
        url = address(desk)
        until(lambda: scalar(url, "SELECT count(*) FROM verdict WHERE content IS NOT NULL") == OTHERS, 180, "the others have verdicts")
        others_s = time.time() - deaths.first
        until(lambda: scalar(url, "SELECT count(*) FROM verdict") == OTHERS + len(poisons), 180, "the poison is named")
        until(lambda: len(deaths.lived) >= 2, 30, "the dead are counted")
        _check(desk, poisons)
    assert others_s <= 120
    assert max(deaths.lived.values()) <= pace.fast_deadline_s + 2.0, "the deadline and a little for a busy machine"


def _post(desk: Desk, poisons: list[str]) -> None:
    posted = [episode(f"s{n}", verifier=FAILED if n % 10 == 0 else None) for n in range(OTHERS)]
    for at, poison in enumerate(poisons):
        posted.insert(37 + 61 * at, episode(poison, says=f"poison {poison}"))
    desk.post(*posted)


def _check(desk: Desk, poisons: list[str]) -> None:
    names = [check.name for check in desk.checks]
    for poison in poisons:
        stored = desk.stored(poison)
        assert stored.verdict is Verdict.FLAG
        assert {stored.notes[at] for at in range(len(names))} == {f"worker died: {POISONS[poison]} in strangers/treacherous"}
        assert set(stored.outcomes) == {Outcome.ERROR}
    assert [d.trajectory for d in desk.feed()].count("s0") == 1
    assert sum(d.scope is Scope.TRAJECTORY for d in desk.feed()) == OTHERS // 10
    treacherous = names.index("strangers/treacherous")
    assert desk.stored("s1").outcomes[treacherous] is Outcome.CLEAN


def test_strangers_checks_come_in_by_the_same_door(strangers: dict[str, Check]) -> None:
    assert list(strangers) == ["strangers/treacherous"]
