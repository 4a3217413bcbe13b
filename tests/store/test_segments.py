import asyncio
import errno
import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path
from uuid import UUID, uuid4

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector import bodies, frames
from inspector.bodies import Body, InFlight
from inspector.errors import StorageFull, Unavailable
from inspector.settings import Limits
from inspector.store.segments import CorruptSegment, Location, SegmentReader, SegmentWriter, files, located, path_of, stretches_of, writing

PROJECT = UUID(int=7)
NOON = 1_795_000_000.0
SLOW_FOLDER = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


async def _once(body: bytes):
    yield body


def body_of(content: bytes, encoding: str = "zstd") -> Body:
    return asyncio.run(bodies.collect(_once(content), encoding, Limits(), InFlight(1 << 30)))


def trajectory(steps: int, size: int = 20) -> bytes:
    draw = random.Random(steps)
    listed = [{"step_id": at, "source": "agent", "message": f"{at}é" + "lorem ipsum "[: size % 12] + draw.randbytes(size // 2).hex()} for at in range(steps)]
    return json.dumps({"id": "a", "trajectory": {"steps": listed, "notes": "x"}}, ensure_ascii=False).encode()


def store(root: Path, content: bytes, encoding: str = "zstd", keys=None, **options) -> tuple[list[Location], list[UUID | None], Body]:
    body = body_of(content, encoding)
    keys = [uuid4() for _ in body.lines] if keys is None else keys
    stretches = stretches_of(body, keys, 1_795_000_000_123)
    with SegmentWriter(root, max_bytes=1 << 30, **options) as writer:
        places = located(stretches, writer.append(PROJECT, stretches))
    return [places[at] for at in range(len(keys)) if at in places], keys, body


def only_file(root: Path) -> Path:
    [path] = root.rglob("*.seg")
    return path


short_lines = st.one_of(
    st.text(min_size=1, max_size=50).map(lambda text: json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass")), st.binary(min_size=1, max_size=40)
)
long_lines = st.integers(0, 40).map(lambda seed: json.dumps({"trajectory": {"steps": [{"m": f"{seed}-{at}" * 2000} for at in range(50 + seed)]}}).encode())
any_lines = st.lists(st.one_of(*[short_lines] * 12, long_lines), max_size=40).map(
    lambda lines: [line.replace(b"\n", b"|").replace(b"\r", b"|").strip(b" \t\x0b\x0c") or b"-" for line in lines]
)


@SLOW_FOLDER
@given(lines=any_lines, ours=st.booleans(), data=st.data())
def test_a_line_survives_the_road_from_the_client_to_the_disk_and_back(tmp_path_factory, lines, ours, data):
    root = tmp_path_factory.mktemp("store")
    packed = frames.pack(lines)
    content = b"".join(packed) if ours else zstandard.compress(b"\n".join(lines))
    places, _, body = store(root, content)
    reader = SegmentReader(root)
    assert body.lines == lines
    order = data.draw(st.permutations(range(len(lines))))
    assert reader.lines(PROJECT, [places[at] for at in order]) == [lines[at] for at in order]
    assert all(reader.line(PROJECT, places[at]) == lines[at] for at in order[:3])
    stored = only_file(root).read_bytes() if lines else b""
    assert zstd_plain(stored) == b"".join(line + b"\n" for line in lines)
    if ours:
        assert all(frame in stored for frame in packed)


def zstd_plain(stored: bytes) -> bytes:
    """What `zstd -d` gives."""
    with zstandard.ZstdDecompressor().stream_reader(stored, read_across_frames=True) as reader:
        return reader.read()


def test_lines_without_a_key_are_left_out_or_nameless(tmp_path):
    lines = [b"{%d}" % at for at in range(60)]
    keys = [uuid4() if at in (3, 50) else None for at in range(60)]
    store(tmp_path / "ours", b"".join(frames.pack(lines)), keys=keys)
    store(tmp_path / "foreign", b"\n".join(lines), "identity", keys=keys)
    ours, foreign = ([*SegmentReader(tmp_path).scan(only_file(tmp_path / kind))] for kind in ("ours", "foreign"))
    assert [len(found.keys) for found in ours] == [24, 12]  # the middle frame held nothing to keep
    assert [key for found in ours for key in found.keys if key] == [keys[3], keys[50]]
    assert [(key, line) for found in foreign for key, _, line in found.lines()] == [(keys[3], b"{3}"), (keys[50], b"{50}")]


@pytest.mark.parametrize("encoding", ["zstd", "identity"])
@pytest.mark.parametrize(("steps", "size"), [(400, 8000), (3, 2_000_000), (60_000, 20), (40, 30)])
def test_a_window_of_steps_is_what_the_document_holds(tmp_path, encoding, steps, size):
    line = trajectory(steps, size)
    lines = [b"{}", line, b"{}"]
    places, _, _ = store(tmp_path, b"".join(frames.pack(lines)) if encoding == "zstd" else b"\n".join(lines), encoding)
    expected = json.loads(line)["trajectory"]["steps"]
    for start in (0, 1, 17, 390, steps - 1, 59_990, 70_000):
        window = SegmentReader(tmp_path).steps(PROJECT, places[1], start, 50)
        assert window.total == steps
        assert [json.loads(step) for step in window.steps] == expected[start : start + 50]
        assert all(step in line for step in window.steps)


def test_fifty_steps_of_a_long_trajectory_are_read_without_the_rest(tmp_path, monkeypatch):
    line = trajectory(500, 8000)
    assert len(line) > 4_000_000
    [place], _, _ = store(tmp_path, b"".join(frames.pack([line])))
    stored, read, real = only_file(tmp_path).stat().st_size, [], os.pread

    def counted(descriptor, size, at):
        read.append(len(content := real(descriptor, size, at)))
        return content

    monkeypatch.setattr(os, "pread", counted)
    window = SegmentReader(tmp_path).steps(PROJECT, place, 200, 50)
    assert len(window.steps) == 50
    assert sum(read) < stored / 3.5  # of nine frames two or so
    assert len(read) <= 3


@pytest.mark.parametrize("line", [b"{}", b'{"trajectory":{"steps":7}}', b"x" * 600_000])
def test_a_line_without_steps_has_none_to_show(tmp_path, line):
    [place], _, _ = store(tmp_path, line, "identity")
    assert SegmentReader(tmp_path).steps(PROJECT, place, 0, 50) == (0, [])


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """A file of four short stretches, a long one and a short one: its path, its bytes, where its stretches end, what it holds."""
    root = tmp_path_factory.mktemp("store")
    lines = [b"{%d}" % at * 9 for at in range(70)] + [trajectory(9, 70_000), b"{last}"]
    _, keys, _ = store(root, b"".join(frames.pack(lines)))
    path = only_file(root)
    whole = path.read_bytes()
    return path, whole, [*[found.offset for found in SegmentReader(root).scan(path)][1:], len(whole)], list(zip(keys, lines, strict=True))


@SLOW_FOLDER
@given(data=st.data())
def test_a_file_cut_anywhere_gives_the_stretches_before_the_cut(several, data):
    path, whole, ends, held = several
    near = st.sampled_from([0, *ends]).flatmap(lambda end: st.integers(max(end - 700, 0), min(end + 700, len(whole))))
    cut = data.draw(st.integers(0, len(whole)) | near)
    torn = whole[:cut] + bytes(data.draw(st.sampled_from([0, 1, 700, 200_000])))  # what was never written may read as zeros
    path.write_bytes(torn)
    found = [[(key, line) for key, _, line in stretch.lines()] for stretch in SegmentReader(path).scan(path)]
    assert len(found) == sum(torn[:end] == whole[:end] for end in ends)
    read = [pair for stretch in found for pair in stretch]
    assert read == held[: len(read)]


def test_damage_before_the_tail_is_named_and_what_came_before_is_given(several):
    path, whole, ends, _ = several
    for at in (ends[0] + 3, ends[0] + 40, ends[1] - 5, ends[-1] - 1):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        found = []
        with pytest.raises(CorruptSegment, match=path.name) as damage:
            found.extend(SegmentReader(path).scan(path))
        assert damage.value.offset == [0, *ends][len(found)]


def test_a_scan_tells_when_and_whose(tmp_path):
    places, keys, _ = store(tmp_path, b"".join(frames.pack([b"{1}", b"{2}"])))
    [found] = SegmentReader(tmp_path).scan(only_file(tmp_path))
    assert (found.project, found.keys, found.received_at.isoformat()) == (PROJECT, tuple(keys), "2026-11-18T11:06:40.123000+00:00")
    assert [place for _, place, _ in found.lines()] == places


@SLOW_FOLDER
@given(data=st.data())
def test_a_flipped_bit_is_never_read_as_a_line(tmp_path_factory, data):
    root = tmp_path_factory.mktemp("store")
    lines = [b"{%d}" % at * 50 for at in range(30)]
    places, _, _ = store(root, b"".join(frames.pack(lines)))
    path = only_file(root)
    stored = bytearray(path.read_bytes())
    stored[data.draw(st.integers(0, len(stored) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(stored)
    with pytest.raises(CorruptSegment, match=path.name) as damage:
        SegmentReader(root).lines(PROJECT, places)
    assert damage.value.offset in {place.offset for place in places}


def test_another_project_cannot_read_a_line(tmp_path):
    [place], _, _ = store(tmp_path, b"{}\n", "identity")
    other = UUID(int=8)
    with pytest.raises(CorruptSegment, match="missing"):
        SegmentReader(tmp_path).line(other, place)
    path = path_of(tmp_path, other, place.segment)
    path.parent.mkdir(parents=True)
    path.write_bytes(only_file(tmp_path).read_bytes())
    with pytest.raises(CorruptSegment, match="a stretch of project"):
        SegmentReader(tmp_path).line(other, place)


@pytest.mark.parametrize("wrong", [Location(0, 0, 1), Location(0, 0, -1), Location(0, 5, 0), Location(0, 9999, 0)])
def test_a_place_that_holds_no_line_is_said_so(tmp_path, wrong):
    [place], _, _ = store(tmp_path, b"{}\n", "identity")
    with pytest.raises(CorruptSegment):
        SegmentReader(tmp_path).line(PROJECT, wrong._replace(segment=place.segment))


def test_each_frame_is_inflated_once_for_a_batch(tmp_path, monkeypatch):
    lines = [b"{%d}" % at for at in range(100)]
    places, _, _ = store(tmp_path, b"".join(frames.pack(lines)))
    inflated = []
    monkeypatch.setattr(files, "inflate", lambda *frame, real=files.inflate: inflated.append(1) or real(*frame))
    assert SegmentReader(tmp_path).lines(PROJECT, places[::-1]) == lines[::-1]
    assert len(inflated) == 5


# --- what lasts ------------------------------------------------------------------------------------------------------


@pytest.fixture
def stretches():
    def make(*lines: bytes):
        body = body_of(b"\n".join(lines), "identity")
        return stretches_of(body, [uuid4() for _ in body.lines], 1)

    return make


def test_nothing_is_answered_before_it_is_flushed(tmp_path, monkeypatch, stretches):
    calls = []
    for name, real in [("write", os.write), ("fdatasync", os.fdatasync), ("fsync", os.fsync)]:
        monkeypatch.setattr(os, name, lambda *arguments, name=name, real=real: calls.append(name) or real(*arguments))
    SegmentWriter(tmp_path, max_bytes=1 << 20).append(PROJECT, stretches(b"{1}"))
    assert calls == ["fsync"] * 4 + ["write", "fdatasync"]  # the four folders that may be new, then the stretch


def test_a_short_write_is_continued(tmp_path, monkeypatch, stretches):
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: real(descriptor, bytes(content[:100])))
    lines = [b"{%d}" % at for at in range(80)]
    made = stretches(*lines)
    places = SegmentWriter(tmp_path, max_bytes=1 << 20).append(PROJECT, made)
    assert SegmentReader(tmp_path).lines(PROJECT, [place for several in places for place in several]) == lines


@pytest.mark.parametrize(("number", "raised"), [(errno.ENOSPC, StorageFull), (errno.EDQUOT, StorageFull), (errno.EIO, Unavailable)])
@pytest.mark.parametrize("call", ["write", "fdatasync"])
def test_after_a_failure_the_file_is_cut_back_and_never_used_again(tmp_path, monkeypatch, stretches, call, number, raised):
    writer = SegmentWriter(tmp_path, max_bytes=1 << 20)
    [[first]] = writer.append(PROJECT, stretches(b"{1}"))
    path = only_file(tmp_path)
    good = path.read_bytes()
    real_write = os.write

    def fail(descriptor, *content):
        if content:
            real_write(descriptor, bytes(content[0][:20]))
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(raised):
            writer.append(PROJECT, stretches(b"{2}"))
    assert path.read_bytes() == good
    [[third]] = writer.append(PROJECT, stretches(b"{3}"))
    assert third.segment != first.segment
    assert SegmentReader(tmp_path).lines(PROJECT, [first, third]) == [b"{1}", b"{3}"]


def test_an_interrupted_append_leaves_no_wrong_places_behind(tmp_path, monkeypatch, stretches):
    writer = SegmentWriter(tmp_path, max_bytes=1 << 20)
    writer.append(PROJECT, stretches(b"{1}"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", lambda descriptor: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            writer.append(PROJECT, stretches(b"{2}"))
    [[place]] = writer.append(PROJECT, stretches(b"{3}"))
    assert SegmentReader(tmp_path).line(PROJECT, place) == b"{3}"


def test_a_full_disk_is_storage_full_and_costs_nothing_that_was_acknowledged(tmp_path):
    """A real limit: the process may write files of 100 kB at most."""
    program = """
import resource, signal, sys, pathlib, uuid
from inspector.errors import Unavailable
from inspector.store.segments import SegmentReader, SegmentWriter, Stretch
from inspector import frames
import os
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
root, project = pathlib.Path(sys.argv[1]), uuid.UUID(int=7)
writer, kept = SegmentWriter(root, max_bytes=1 << 30), []
for number in range(20):
    line = os.urandom(6000).hex().encode()
    stretch = Stretch(1, (uuid.uuid4(),), (len(line),), tuple(frames.pack([line])), (len(line) + 1,))
    try:
        kept.append((writer.append(project, [stretch])[0][0], line))
    except Unavailable as error:
        print(type(error).__name__)
assert SegmentReader(root).lines(project, [place for place, _ in kept]) == [line for _, line in kept]
for path in root.rglob("*.seg"):
    print(len([*SegmentReader(root).scan(path)]))
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    refused, *counts = done.stdout.split()
    assert refused == "Unavailable"
    assert sum(map(int, counts)) == 19


def test_a_new_file_begins_above_the_size_and_on_the_next_day(tmp_path, stretches):
    now = [NOON]
    writer = SegmentWriter(tmp_path, max_bytes=300, clock=lambda: now[0])
    places = [writer.append(PROJECT, stretches(b"{%d}" % at))[0][0] for at in range(6)]
    now[0] += 86_400
    places.append(writer.append(PROJECT, stretches(b"{6}"))[0][0])
    files = {path_of(tmp_path, PROJECT, place.segment) for place in places}
    assert len(files) > 2
    assert {path.parent.name for path in files} == {"2026-11-18", "2026-11-19"}
    assert SegmentReader(tmp_path).lines(PROJECT, places) == [b"{%d}" % at for at in range(7)]


def test_files_are_for_one_project_and_only_so_many_stay_open(tmp_path, monkeypatch, stretches):
    monkeypatch.setattr(writing, "OPEN_FILES", 3)
    with SegmentWriter(tmp_path, max_bytes=1 << 20) as writer:
        for number in range(10):
            [[place]] = writer.append(UUID(int=number), stretches(b"{%d}" % number))
            assert SegmentReader(tmp_path).line(UUID(int=number), place) == b"{%d}" % number
        held = [os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")]
        assert sum(name.startswith(str(tmp_path)) for name in held) == 3


def test_threads_share_a_writer(tmp_path, stretches):
    writer, found = SegmentWriter(tmp_path, max_bytes=20_000), []
    made = {number: stretches(*[b"{%d-%d}" % (number, at) for at in range(30)]) for number in range(8)}

    def work(number):
        for _ in range(5):
            places = writer.append(PROJECT, made[number])
            found.append((number, [place for several in places for place in several]))

    threads = [threading.Thread(target=work, args=(number,)) for number in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 40
    reader = SegmentReader(tmp_path)
    assert all(reader.lines(PROJECT, places) == [b"{%d-%d}" % (number, at) for at in range(30)] for number, places in found)


def test_a_child_process_begins_its_own_file(tmp_path, stretches):
    writer = SegmentWriter(tmp_path, max_bytes=1 << 20)
    [[first]] = writer.append(PROJECT, stretches(b"{1}"))
    writer._process -= 1  # as a child of fork sees it
    [[second]] = writer.append(PROJECT, stretches(b"{2}"))
    assert first.segment != second.segment


# --- deletion --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_deleted_line_is_gone_from_the_disk_and_its_neighbours_stay(tmp_path, at):
    lines = [b'"first"', trajectory(300, 4000), b'"last"']
    places, keys, _ = store(tmp_path, b"".join(frames.pack(lines)))
    path = only_file(tmp_path)
    with SegmentWriter(tmp_path, max_bytes=1 << 20) as writer:
        moved = dict(writer.rewrite(PROJECT, places[at]))
        writer.blank(PROJECT, places[at])
        writer.blank(PROJECT, places[at])
    reader = SegmentReader(tmp_path)
    with pytest.raises(CorruptSegment, match="erased"):
        reader.line(PROJECT, places[at])
    for other in {0, 1, 2} - {at}:
        assert reader.line(PROJECT, moved.get(keys[other], places[other])) == lines[other]
    found = [line for file in tmp_path.rglob("*.seg") for stretch in reader.scan(file) for _, _, line in stretch.lines()]
    assert sorted(found) == sorted(line for other, line in enumerate(lines) if other != at)
    assert lines[at] not in b"".join(zstd_plain(file.read_bytes()) for file in tmp_path.rglob("*.seg"))
    assert path.stat().st_size > 0


def test_a_deleted_line_leaves_its_frame_to_the_others(tmp_path):
    lines = [b"{%d}" % at for at in range(10)]
    places, keys, _ = store(tmp_path, b"".join(frames.pack(lines)))
    with SegmentWriter(tmp_path, max_bytes=1 << 20) as writer:
        moved = writer.rewrite(PROJECT, places[4])
        writer.blank(PROJECT, places[4])
    assert [key for key, _ in moved] == keys[:4] + keys[5:]
    assert SegmentReader(tmp_path).lines(PROJECT, [place for _, place in moved]) == lines[:4] + lines[5:]
    assert zstd_plain(path_of(tmp_path, PROJECT, places[0].segment).read_bytes()) == b""


def test_a_refused_first_append_leaves_no_empty_file(tmp_path, monkeypatch, stretches):
    writer = SegmentWriter(tmp_path, max_bytes=1 << 20)

    def full(descriptor, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StorageFull):
        writer.append(PROJECT, stretches(b"{}"))
    assert list(tmp_path.rglob("*.seg")) == []
