import json

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from inspector import frames
from inspector.errors import BadSubmission

lines_of_bytes = st.lists(st.binary(min_size=1, max_size=200).map(lambda line: line.replace(b"\n", b"-")), max_size=80)


def posted(*steps: object, **fields: object) -> bytes:
    return json.dumps({"id": "a", **fields, "trajectory": {"steps": list(steps), "notes": "after"}}, ensure_ascii=False).encode()


def long_steps(count: int, size: int) -> list[dict[str, object]]:
    return [{"step_id": at, "source": "agent", "message": f"{at} ," + "é\n" * (size // 3)} for at in range(count)]


def raw_of(packed: list[bytes]) -> list[bytes]:
    return [zstandard.ZstdDecompressor().decompress(frame) for frame in packed]


@given(lines_of_bytes)
def test_frames_hold_the_lines_in_order_within_the_limits(lines):
    packed = frames.pack(lines)
    raw = raw_of(packed)
    assert b"".join(raw) == b"".join(line + b"\n" for line in lines)
    assert all(0 < len(piece) <= frames.FRAME_BYTES and piece.count(b"\n") <= frames.FRAME_LINES for piece in raw)


@given(lines_of_bytes)
def test_frames_of_a_body_are_found_without_inflating_them(lines):
    packed = frames.pack(lines)
    spans = frames.spans(b"".join(packed))
    assert spans is not None
    assert [span.end - span.start for span in spans] == [len(frame) for frame in packed]
    assert [span.raw for span in spans] == [len(raw) for raw in raw_of(packed)]


def test_a_frame_declares_its_size_and_needs_a_small_window():
    head = frames.parameters(frames.pack([b"x" * 400_000])[0])
    assert head.raw == 400_001
    assert head.window <= frames.WINDOW
    assert head.checksum


@pytest.mark.parametrize("extra", [-2, -1, 0, 1, 2])
def test_a_line_around_the_frame_limit_keeps_every_byte(extra):
    lines = [b"a", b"x" * (frames.FRAME_BYTES + extra), b"b"]
    raw = raw_of(frames.pack(lines))
    assert b"".join(raw) == b"".join(line + b"\n" for line in lines)
    assert max(map(len, raw)) <= frames.FRAME_BYTES


def test_a_long_line_is_cut_between_steps():
    line = posted(*long_steps(40, 50_000))
    raw = raw_of(frames.pack([line]))
    assert len(raw) > 3
    assert b"".join(raw) == line + b"\n"
    assert all(piece.startswith(b'{"step_id"') for piece in raw[1:])


def test_a_giant_step_is_cut_inside():
    line = posted({"step_id": 1, "source": "user"}, {"step_id": 2, "source": "agent", "message": "z" * 2_000_000}, {"step_id": 3, "source": "user"})
    raw = raw_of(frames.pack([line]))
    assert b"".join(raw) == line + b"\n"
    assert max(map(len, raw)) <= frames.FRAME_BYTES


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
)


@given(st.lists(json_values, max_size=12), st.sampled_from([None, 1, "\t"]), st.data())
def test_step_offsets_give_back_each_step_byte_for_byte(steps, indent, data):
    text = json.dumps({"extra": {"steps": steps}, "trajectory": {"steps": steps}}, indent=indent, ensure_ascii=data.draw(st.booleans()))
    line = text.encode("utf-8", "surrogatepass").replace(b"\n", b" ")
    offsets = frames.step_offsets(line)
    assert offsets is not None
    assert len(offsets) == len(steps) + 1
    start = data.draw(st.integers(0, len(steps)))
    end = data.draw(st.integers(start, len(steps)))
    found = frames.steps_within(line[offsets[start] : offsets[end]])
    assert [json.loads(step) for step in found] == steps[start:end]
    assert all(step in line for step in found)


@pytest.mark.parametrize(
    "line",
    [b"no json", b"{}", b'{"trajectory":null}', b'{"trajectory":{"steps":null}}', b'{"trajectory":{"steps":{}}}', b'{"trajectory":{"steps":' + b"[" * 20_000],
)
def test_a_line_without_a_list_of_steps_has_no_offsets(line):
    assert frames.step_offsets(line) is None


def test_millions_of_tiny_elements_are_not_listed():
    line = b'{"trajectory":{"steps":[' + b"0," * (frames.COMMAS + 1) + b"0]}}"
    assert frames.step_offsets(line) is None


def test_a_long_line_that_is_no_trajectory_is_cut_anywhere():
    line = bytes(range(11, 256)) * 6000
    assert b"".join(raw_of(frames.pack([line]))) == line + b"\n"


@pytest.mark.parametrize("line", [b"", b"two\nlines"])
def test_what_is_not_one_line_is_refused_by_its_number(line):
    with pytest.raises(BadSubmission, match="line 1"):
        frames.pack([b"fine", line])


@given(st.data())
def test_a_frame_cut_off_anywhere_is_broken(data):
    frame = frames.pack([b"some line", b"x" * 300])[0]
    with pytest.raises(frames.BrokenFrame):
        frames.frame_end(frame[: data.draw(st.integers(0, len(frame) - 1))])
    assert frames.frame_end(frame) == len(frame)


def test_incompressible_and_repeated_content_walks_to_the_same_end():
    for content in (b"\0" * 500_000, msgspec.json.encode(list(range(60_000))), zstandard.compress(b"q" * 99) * 3000):
        frame = zstandard.ZstdCompressor(write_checksum=True).compress(content[:500_000])
        assert frames.frame_end(b"ab" + frame + b"rest", 2) == 2 + len(frame)


def test_a_frame_of_countless_empty_blocks_is_refused():
    frame = zstandard.ZstdCompressor().compress(b"x")
    head = frames.parameters(frame).header
    with pytest.raises(frames.BrokenFrame, match="tiny blocks"):
        frames.frame_end(frame[:head] + b"\0\0\0" * 1000 + frame[head:])


def test_foreign_frames_are_not_taken_for_ours():
    undeclared = zstandard.ZstdCompressor(write_content_size=False).compress(b"line\n")
    large = zstandard.ZstdCompressor().compress(b"x" * (frames.FRAME_BYTES + 1))
    for body in (undeclared, large, b"garbage and more garbage", frames.pack([b"x"])[0] + undeclared):
        assert frames.spans(body) is None
