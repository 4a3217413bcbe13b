"""Control groups of both versions are found where they are, and asked for in their own words."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.sandbox import cgroups
from inspector.sandbox.cgroups import find
from inspector.sandbox.group_pool import KEPT, UNBURIED, GroupPool
from inspector.sandbox.protocol import Broken, Limits

LIMITS = Limits(cpus=1.5, memory_bytes=1 << 20, pids=7)


def mount(folder, root, kind, options):
    return f"30 23 0:25 {root} {folder} rw,relatime shared:9 - {kind} {kind} rw,{options}\n"


def tree(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


@pytest.fixture
def unified(tmp_path):
    """Version 2 as a container sees it: its own group is the top of the mount."""
    tree(tmp_path, cgroup__controllers="cpu io memory pids", cgroup__subtree_control="cpu memory pids", cgroup__procs="")
    return find(mount(tmp_path, "/kubepods/pod1", "cgroup2", "nsdelegate"), "0::/kubepods/pod1\n"), tmp_path


def test_version_1_is_found_in_the_group_that_we_are_in(tmp_path):
    mounts = "".join(mount(tmp_path / name, "/", "cgroup", name) for name in ("memory", "pids", "cpu,cpuacct", "freezer"))
    found = find(mounts, "8:pids:/\n4:memory:/service/one\n2:cpu,cpuacct:/service\n6:freezer:/\n")
    assert {name: home.folder.relative_to(tmp_path).as_posix() for name, home in found.homes.items()} == {
        "memory": "memory/service/one",
        "pids": "pids",
        "cpu": "cpu,cpuacct/service",
        "cpuacct": "cpu,cpuacct/service",
        "freezer": "freezer",
    }
    assert not any(home.unified for home in found.homes.values())


def test_a_container_s_own_group_is_the_top_that_it_sees(unified):
    found, folder = unified
    assert {home.folder for home in found.homes.values()} == {folder}
    assert found.missing() == {}


def test_beside_version_1_the_second_gives_what_the_first_does_not_have(tmp_path):
    second = tree(tmp_path / "unified", cgroup__controllers="hugetlb pids", cgroup__subtree_control="pids", cgroup__procs="")
    mounts = mount(tmp_path / "memory", "/", "cgroup", "memory") + mount(second, "/", "cgroup2", "")
    found = find(mounts, "4:memory:/\n0::/\n")
    assert {name: home.unified for name, home in found.homes.items()} == {"memory": False, "pids": True}
    assert set(found.missing()) == {"cgroup cpu"} | ({"cgroup memory"} if not (tmp_path / "memory").exists() else set())


def test_nothing_mounted_is_said_for_each_controller():
    assert set(find("", "").missing()) == {"cgroup memory", "cgroup pids", "cgroup cpu"}


def test_what_is_not_delegated_is_asked_for_and_missing_where_it_is_not_given(tmp_path, monkeypatch):
    tree(tmp_path / "user", cgroup__controllers="memory pids", cgroup__subtree_control="", cgroup__procs="1\n")
    asked = []

    def refuse(path, value):
        asked.append((path.name, value))
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(cgroups, "_put", refuse)
    found = find(mount(tmp_path, "/", "cgroup2", ""), "0::/user\n")
    assert asked == [("cgroup.subtree_control", "+memory +pids")]  # and nobody is moved in a group that is not ours
    assert found.homes == {}


def test_limits_are_written_in_the_words_of_version_2(unified, monkeypatch):
    found, folder = unified
    written = {}
    monkeypatch.setattr(cgroups, "_put", lambda path, value: written.setdefault(path.name, value))
    group = found.make("box", LIMITS)
    assert written == {"memory.max": "1048576", "memory.swap.max": "0", "pids.max": "7", "cpu.max": "150000 100000"}
    assert group.entrances() == [folder / "box" / "cgroup.procs"]
    tree(
        folder / "box", cpu__stat="usage_usec 2500000\n", memory__events="low 0\noom_kill 3\n", memory__peak="77\n", memory__current="5\n", cgroup__procs="4\n"
    )
    assert (group.cpu_s(), group.out_of_memory(), group.peak_bytes(), group.memory_bytes(), group.pids()) == (2.5, 3, 77, 5, [4])


def test_a_limit_that_cannot_be_written_breaks_the_box_before_it_is_one(unified, monkeypatch):
    found, folder = unified

    def fail(path, value):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cgroups, "_put", fail)
    with pytest.raises(Broken, match="control group"):
        found.make("box", LIMITS)
    assert not (folder / "box").exists()


def test_an_emptied_group_serves_the_next_box_under_its_own_limits(boxes):
    boxes._standing()[0].groups.close()
    with boxes.create(limits=Limits(memory_bytes=64 << 20, pids=20)) as box:
        first = box.group
        box.run(["true"])
    with boxes.create(limits=Limits(memory_bytes=256 << 20, pids=40)) as box:
        assert box.group is first
        assert box.run(["python3", "-c", "x = bytearray(100 << 20)"]).ok
        assert box.run(["sh", "-c", "for i in $(seq 30); do sleep 0.1 & done; wait"]).stderr == b""


def test_no_more_groups_are_kept_than_a_few(boxes):
    pool = GroupPool(cgroups.here(), iter(f"{boxes._standing()[0].name}-{10**6 + n}" for n in range(KEPT + 2)).__next__)
    taken = [pool.take(LIMITS) for _ in range(KEPT + 2)]
    for group in taken:
        pool.give(group)
    assert len(pool.free) == KEPT
    pool.close()
    assert not any(Path(folder).exists() for group in taken for folder in group.folders.values())


def test_the_dead_of_earlier_commands_do_not_count_against_the_next(boxes):
    with boxes.create(limits=Limits(memory_bytes=64 << 20, pids=8)) as box:
        assert all(box.run(["sh", "-c", "true; true"]).ok for _ in range(30))
        assert b"fork" in box.run(["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5; do sleep 1 & done"]).stderr


def test_a_group_with_many_dead_who_are_not_buried_waits(boxes, monkeypatch):
    pool = GroupPool(cgroups.here(), iter(f"{boxes._standing()[0].name}-8{n}" for n in range(20)).__next__)
    first = pool.take(LIMITS)
    pool.give(first)
    monkeypatch.setattr(cgroups.Group, "counted", lambda group: UNBURIED + 1)
    second = pool.take(LIMITS)
    assert second is not first
    monkeypatch.undo()
    assert pool.take(LIMITS) is first
    first.remove()
    second.remove()
