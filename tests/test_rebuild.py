"""The database is lost and the segments are not: everything that was acknowledged comes back under its own key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inspector import rebuild
from inspector.audit import selected
from inspector.errors import Unavailable
from inspector.intake import Intake, Posting, Project
from inspector.rebuild import Restored
from inspector.settings import Limits
from inspector.store import decisions, projects, selections, trajectories
from inspector.store.segments import SegmentReader, SegmentWriter
from inspector.store.session import driver, transaction
from inspector.verdict import Action, Verdict
from tests.audit.conftest import FAILED, Bell, Desk, OpenDesk, episode

EMPTY = """DO $$ DECLARE t text; BEGIN
FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version'
LOOP EXECUTE 'TRUNCATE ' || t || ' CASCADE'; END LOOP; END $$"""
POSTED = [
    episode("scored", verifier=FAILED, group={"id": "g", "size": 3}, run={"id": "r", "step": 7, "policy_version": 3}),
    episode("zero", reward=0.0, verifier=None),
    episode("none", reward=None, verifier=None),
    episode("long", says="x" * 1_500_000, verifier=None),
    *(episode(f"i{n}", environment={"id": f"acme/e{n % 3}", "version": "1"}) for n in range(60)),
]


def lose(desk: Desk) -> None:
    with transaction(desk.engine) as session:
        driver(session).execute(EMPTY)


def restore(desk: Desk) -> Restored:
    with transaction(desk.engine) as session:
        selection = selections.ensure(session, selected(desk.checks))
    return rebuild.rebuild(desk.engine, desk.root, selection)


def everything(desk: Desk) -> dict[str, Any]:
    """Of each trajectory all that a rebuild must bring back, and its bytes."""
    reader, found = SegmentReader(desk.root), {}
    with transaction(desk.engine) as session:
        project = projects.restore(session, desk.project.uuid)
        for row in trajectories.page(session, project, trajectories.Filter(), None, 1000).rows:
            subject = trajectories.find(session, project, row.key)
            of_row = {
                name: getattr(row, name) for name in ("key", "environment", "version", "task", "run", "group", "step", "policy_version", "reward", "length")
            }
            found[row.id] = (of_row, subject.location, reader.line(subject.project_uuid, subject.location))
    return found


@pytest.fixture
def posted(desk: Desk) -> Desk:
    desk.post(*POSTED[:30])
    desk.post(*POSTED[30:])
    desk.audit()
    return desk


def restored_desk(desk: Desk) -> Desk:
    with transaction(desk.engine) as session:
        project = Project(projects.restore(session, desk.project.uuid), desk.project.uuid)
        selection = selections.ensure(session, selected(desk.checks))
    intake = Intake(desk.engine, SegmentWriter(desk.root, max_bytes=1 << 28), Bell(), selection, Limits())
    return Desk(desk.engine, desk.root, desk.checks, project, intake)


def test_everything_is_there_again_under_its_own_key_and_is_audited_again(posted: Desk) -> None:
    before, feed = everything(posted), posted.feed()
    lose(posted)
    assert restore(posted) == Restored(len(POSTED), 0, 1, ())
    assert everything(posted) == before
    again = restored_desk(posted)
    assert again.audit() == len(POSTED)
    assert again.stored("scored").action is Action.EXCLUDE
    assert [(d.seq, d.trajectory, d.action) for d in again.feed()] == [(d.seq, d.trajectory, d.action) for d in feed]
    assert again.stored("none").verdict is Verdict.ACCEPT


def test_its_feed_has_another_epoch(posted: Desk) -> None:
    from inspector.store import decisions

    with transaction(posted.engine) as session:
        before = decisions.head(session, posted.project.id).epoch
    lose(posted)
    restore(posted)
    again = restored_desk(posted)
    with transaction(posted.engine) as session:
        assert decisions.head(session, again.project.id).epoch != before


def test_a_second_rebuild_changes_nothing(posted: Desk) -> None:
    lose(posted)
    restore(posted)
    before = everything(posted)
    assert restore(posted) == Restored(0, len(POSTED), 1, ())
    assert everything(posted) == before


def test_a_rebuild_beside_what_is_still_there_adds_only_what_is_missing(posted: Desk) -> None:
    before = everything(posted)
    with transaction(posted.engine) as session:
        driver(session).execute("DELETE FROM trajectory WHERE id IN ('zero', 'i7')")
    assert restore(posted) == Restored(2, len(POSTED) - 2, 1, ())
    assert everything(posted) == before


def test_what_is_posted_again_after_a_rebuild_is_a_duplicate(posted: Desk) -> None:
    keys = {id_: row["key"] for id_, (row, _, _) in everything(posted).items()}
    lose(posted)
    restore(posted)
    again = restored_desk(posted)
    lines = [json.dumps(one).encode() for one in POSTED]
    receipts = again.intake.accept(again.project, Posting(lines, {}, None))
    assert {receipt.status.value for receipt in receipts} == {"duplicate"}
    assert {receipt.id: receipt.key for receipt in receipts} == keys


def test_what_was_let_in_under_wider_limits_comes_back(desk: Desk) -> None:
    limits = Limits(envelope_bytes=16 << 20)
    posted = json.dumps(episode("a", verifier={"exit_code": 0, "stdout": "x" * (Limits().envelope_bytes + 1)})).encode()
    [receipt] = Intake(desk.engine, desk.intake.writer, Bell(), desk.intake.selection, limits).accept(desk.project, Posting([posted], {}, None))
    assert receipt.status == "created"
    lose(desk)
    assert restore(desk)._replace(files=0) == Restored(1, 0, 0, ())


def test_long_lines_are_not_all_held_at_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.post(*(episode(f"{n}", says=f"{n}" * 1_500_000, verifier=None) for n in range(4)))
    monkeypatch.setattr(rebuild, "BLOCK_BYTES", 3_000_000)
    held, restore_block = [], rebuild._restore

    def counted(engine: Any, project: Any, block: list[Any], selection: int) -> int:
        held.append(len(block))
        return restore_block(engine, project, block, selection)

    monkeypatch.setattr(rebuild, "_restore", counted)
    lose(desk)
    assert restore(desk).rows == 4
    assert held == [2, 2]


def test_a_torn_tail_is_passed_over_in_silence(posted: Desk) -> None:
    """It was never acknowledged."""
    before = everything(posted)
    [path] = posted.root.rglob("*.seg")
    posted.intake.writer.close()
    whole = path.read_bytes()
    posted.post(episode("never acknowledged"))
    [other] = [p for p in posted.root.rglob("*.seg") if p != path]
    path.write_bytes(whole + other.read_bytes()[:-7])
    other.unlink()
    lose(posted)
    assert restore(posted) == Restored(len(POSTED), 0, 1, ())
    assert everything(posted) == before


def damage(path: Path, at: int) -> None:
    stored = bytearray(path.read_bytes())
    stored[at] ^= 0xFF
    path.write_bytes(stored)


def test_a_damaged_file_is_reported_and_costs_no_other(open_desk: OpenDesk) -> None:
    ours, theirs = open_desk(), open_desk(name="beta")
    ours.post(*POSTED[:30])
    theirs.post(*(episode(f"t{n}") for n in range(40)))
    damaged = next(path for path in ours.root.rglob("*.seg") if str(ours.project.uuid) in str(path))
    damage(damaged, damaged.stat().st_size // 2)
    lose(ours)
    done = restore(ours)
    assert done.files == 2
    assert len(done.damaged) == 1
    assert str(damaged) in done.damaged[0]
    assert set(everything(theirs)) == {f"t{n}" for n in range(40)}


def test_the_files_of_a_running_service_are_found(posted: Desk) -> None:
    """The root is the one that its writer has: where nothing is found, nothing comes back and nobody notices."""
    assert rebuild.files_below(posted.root) == list(posted.root.rglob("*.seg"))


def test_a_database_that_was_only_behind_gets_another_epoch_too(posted: Desk) -> None:
    with transaction(posted.engine) as session:
        before = decisions.head(session, posted.project.id).epoch
        driver(session).execute("DELETE FROM trajectory WHERE id = 'scored'")
    assert restore(posted).rows == 1
    with transaction(posted.engine) as session:
        assert decisions.head(session, posted.project.id).epoch != before


# --- several lines of one id -----------------------------------------------------------------------------------------


def second_process(desk: Desk) -> Intake:
    return Intake(desk.engine, SegmentWriter(desk.root, max_bytes=1 << 28), Bell(), desk.intake.selection, Limits())


def test_of_a_race_for_one_id_the_acknowledged_line_comes_back(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loser has its line on the disk first, and its row last."""
    winner, add = second_process(desk), trajectories.add
    lines = {who: json.dumps(episode("a", says=who)).encode() for who in ("the loser", "the winner")}

    def add_after_the_winner(*arguments: Any) -> None:
        monkeypatch.setattr(trajectories, "add", add)
        [receipt] = winner.accept(desk.project, Posting([lines["the winner"]], {}, None))
        assert receipt.status == "created"
        add(*arguments)

    monkeypatch.setattr(trajectories, "add", add_after_the_winner)
    [lost] = desk.intake.accept(desk.project, Posting([lines["the loser"]], {}, None))
    assert lost.status == "conflict"
    before = everything(desk)
    lose(desk)
    assert restore(desk).rows == 1
    assert everything(desk) == before
    assert everything(desk)["a"][2] == lines["the winner"]


def test_what_was_refused_with_the_database_gives_way_to_what_was_posted_after_it(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any) -> None:
        raise Unavailable("the database is away")

    with monkeypatch.context() as patched:
        patched.setattr(trajectories, "add", away)
        with pytest.raises(Unavailable):
            desk.post(episode("a", says="first"), episode("b", says="only"))
    desk.post(episode("a", says="second"))
    lose(desk)
    assert restore(desk).rows == 2
    found = everything(desk)
    assert b"second" in found["a"][2]
    assert b"only" in found["b"][2], "it was not acknowledged, and nothing else has its id"


def test_voids_do_not_disturb_who_reads_a_segment(desk: Desk) -> None:
    desk.post(*POSTED[:5])
    desk.intake.writer.void(desk.project.uuid, [desk.key("zero")])
    desk.post(*POSTED[5:9])
    assert len(everything(desk)) == 9
    [path] = desk.root.rglob("*.seg")
    assert list(SegmentReader(desk.root).voids(path)) == [desk.key("zero")]
