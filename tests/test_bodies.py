import asyncio
import gzip
import subprocess
import sys
import zlib
from contextlib import suppress

import msgspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector import bodies, frames
from inspector.bodies import InFlight
from inspector.errors import BadSubmission, TooLarge, TooMany, UnknownEncoding
from inspector.settings import Limits

LIMITS = Limits()
SMALL = msgspec.structs.replace(LIMITS, body_bytes=100_000, inflated_bytes=400_000, line_bytes=50_000)


async def _chunks(body: bytes, size: int):
    for at in range(0, len(body), size):
        yield body[at : at + size]


def collect(body, encoding="identity", *, limits=LIMITS, budget=None, size=65_536, **options):
    return asyncio.run(bodies.collect(_chunks(body, size), encoding, limits, budget or InFlight(192 << 20), **options))


def zstd(body: bytes, **options) -> bytes:
    return zstandard.ZstdCompressor(**options).compress(body)


def streamed(body: bytes) -> bytes:
    """A frame that does not declare its size."""
    return zstd(body, write_content_size=False)


ENCODERS = {
    "identity": lambda body: body,
    "gzip": gzip.compress,
    "gzip members": lambda body: gzip.compress(body[: len(body) // 2]) + gzip.compress(body[len(body) // 2 :]),
    "zstd": zstd,
    "zstd streamed": streamed,
    "zstd frames": lambda body: streamed(body[: len(body) // 3]) + zstd(body[len(body) // 3 :]),
}


@pytest.mark.parametrize("encoder", list(ENCODERS))
@given(
    lines=st.lists(st.text(min_size=1).map(str.encode).map(lambda line: line.replace(b"\n", b".").replace(b"\r", b".") + b"!"), max_size=30),
    size=st.integers(1, 99),
)
def test_every_encoding_gives_the_same_lines(encoder, lines, size):
    body = collect(ENCODERS[encoder](b"".join(line + b"\n" for line in lines)), encoder.split()[0], size=size)
    assert body.lines == lines
    assert list(body.numbers) == list(range(len(lines)))


@given(st.lists(st.binary(min_size=1, max_size=60).map(lambda line: b"{" + line.replace(b"\n", b".") + b"}"), max_size=60))
def test_our_own_frames_are_kept_byte_for_byte(lines):
    packed = frames.pack(lines)
    body = collect(b"".join(packed), "zstd")
    assert body.lines == lines
    assert body.frames is not None
    assert [bytes(frame) for framed in body.frames for frame in framed.frames] == packed
    assert [at for framed in body.frames for at in range(framed.first, framed.first + framed.lines)] == list(range(len(lines)))


def test_the_frames_of_a_long_line_are_one_run():
    lines = [b"{1}", b"{" + b"x" * 1_200_000 + b"}", b"{2}"]
    body = collect(b"".join(frames.pack(lines)), "zstd")
    assert body.lines == lines
    assert body.frames is not None
    assert [(len(framed.frames), framed.first, framed.lines) for framed in body.frames] == [(1, 0, 1), (3, 1, 1), (1, 2, 1)]


@pytest.mark.parametrize(
    "pieces",
    [
        [b"{1}\n{2", b"}\n"],  # a line over two frames that is not long
        [b"{1}\n{2}"],  # the last line has no end
        [b"{1}\n\n{2}\n"],  # a blank line
        [b"{1}\r\n{2}\r\n"],
        [b"{1}\n" * 12 + b"{2}\n" * 13],  # more than 24 lines
    ],
)
def test_frames_that_break_a_rule_are_read_and_not_kept(pieces):
    body = collect(b"".join(map(zstd, pieces)), "zstd")
    assert body.lines == [line.rstrip(b"\r") for line in b"".join(pieces).split(b"\n") if line]
    assert body.frames is None


def test_blank_lines_are_skipped_and_counted():
    body = collect(b"{1}\n\n  \t\r\n{2}\r\n\n{3}")
    assert body.lines == [b"{1}", b"{2}", b"{3}"]
    assert list(body.numbers) == [0, 3, 5]


@pytest.mark.parametrize("encoder", list(ENCODERS))
def test_a_line_over_its_limit_is_refused_alone(encoder):
    lines = [b"{1}", b"x" * 50_001, b"y" * 50_000, b"z" * 120_000]
    body = collect(ENCODERS[encoder](b"\n".join(lines)), encoder.split()[0], limits=msgspec.structs.replace(SMALL, body_bytes=1 << 20))
    assert body.lines == [b"{1}", b"", lines[2], b""]
    assert body.refused == {1: "a line of 50001 bytes, 50000 is the limit", 3: "a line of 120000 bytes, 50000 is the limit"}


def test_a_line_over_its_limit_in_our_own_frames_is_refused_alone():
    body = collect(b"".join(frames.pack([b"{1}", b"x" * 1_000_000, b"{2}"])), "zstd", limits=msgspec.structs.replace(LIMITS, line_bytes=900_000))
    assert body.lines == [b"{1}", b"", b"{2}"]
    assert list(body.refused) == [1]
    assert body.frames is None


@pytest.mark.parametrize("encoder", list(ENCODERS))
def test_what_inflates_too_far_is_too_large(encoder):
    with pytest.raises(TooLarge, match="400000"):
        collect(ENCODERS[encoder](b"some text\n" * 50_000), encoder.split()[0], limits=msgspec.structs.replace(SMALL, body_bytes=1 << 20))


def test_our_own_frames_are_added_up_before_one_is_inflated():
    with pytest.raises(TooLarge):
        collect(b"".join(frames.pack([b"x" * 40_000] * 11)), "zstd", limits=SMALL)


def test_a_body_of_newlines_is_not_free():
    with pytest.raises(TooLarge):
        collect(b"\n" * 10_000, limits=SMALL)


def test_a_body_over_its_limit_is_too_large_with_and_without_a_declared_length():
    with pytest.raises(TooLarge, match="100000"):
        collect(b"x" * 100_001, limits=SMALL)
    with pytest.raises(TooLarge, match="a body of 100001 bytes"):
        collect(b"", limits=SMALL, declared_bytes=100_001)


BROKEN = {
    "zstd": [
        b"this is no zstd at all",
        streamed(b"some text" * 99)[:-1],
        zstd(b"some text" * 99)[:-3],
        zstd(b"text") + b"tail",
        zstd(b"text")[:3],
        frames.pack([b"x" * 500])[0][:-1],
    ],
    "gzip": [
        b"this is no gzip at all",
        gzip.compress(b"some text", mtime=0)[:-1],
        gzip.compress(b"text", mtime=0) + b"tail",
        gzip.compress(b"text", mtime=0)[:-8] + bytes(8),
        b"\x1f\x8b",
    ],
}


@pytest.mark.parametrize(("encoding", "body"), [(encoding, body) for encoding, several in BROKEN.items() for body in several])
def test_a_broken_or_cut_off_body_is_refused(encoding, body):
    budget = InFlight(1 << 20)
    with pytest.raises(BadSubmission) as refusal:
        collect(body, encoding, budget=budget)
    assert refusal.value.status_code == 422
    assert budget.used == 0


def test_a_frame_of_ours_with_a_flipped_bit_is_refused():
    frame = bytearray(frames.pack([bytes(range(32, 127)) * 40])[0])
    frame[40] ^= 1
    with pytest.raises(BadSubmission, match="broken zstd frame at byte 0"):
        collect(bytes(frame), "zstd")


@settings(max_examples=200)
@given(st.binary(max_size=200), st.sampled_from(["zstd", "gzip"]), st.booleans())
def test_no_body_raises_anything_but_a_refusal(noise, encoding, prefixed):
    body = (zstd(b"{}\n") if encoding == "zstd" else gzip.compress(b"{}\n", mtime=0)) + noise if prefixed else noise
    budget = InFlight(1 << 30)
    with suppress(BadSubmission):
        collect(body, encoding, budget=budget).close()
    assert budget.used == 0


@pytest.mark.parametrize("encoding", ["br", "gzip, zstd", "deflate", "zstd;q=1"])
def test_an_unknown_encoding_is_named(encoding):
    with pytest.raises(UnknownEncoding, match=encoding):
        collect(b"", encoding)


@pytest.mark.parametrize("encoding", [None, "", "identity", " GZIP ", "x-gzip", "ZSTD"])
def test_an_empty_body_has_no_lines(encoding):
    assert collect(b"", encoding).lines == []


def _window(log: int) -> bytes:
    parameters = zstandard.ZstdCompressionParameters(window_log=log, compression_level=1)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return compressor.compress(b"{}\n") + compressor.flush()


def test_a_window_of_a_gigabyte_is_refused_wherever_it_comes():
    assert collect(_window(23), "zstd").lines == [b"{}"]
    with pytest.raises(BadSubmission, match="window of 1073741824 bytes, 8388608 is the limit"):
        collect(_window(30), "zstd")
    with pytest.raises(BadSubmission, match="too much memory"):
        collect(streamed(b"{}\n") + _window(30), "zstd")


def test_more_frames_than_any_client_sends_are_refused():
    with pytest.raises(BadSubmission, match="more than 65536 zstd frames"):
        collect(streamed(b"") * 65_537, "zstd")


def test_bytes_in_flight_are_counted_before_they_are_read_and_given_back():
    budget = InFlight(100_000)
    first = collect(b"x" * 60_000, budget=budget, declared_bytes=60_000)
    read = []

    async def chunks():
        read.append(1)
        yield b"x" * 60_000

    with pytest.raises(TooMany) as refusal:
        asyncio.run(bodies.collect(chunks(), "identity", LIMITS, budget, declared_bytes=60_000))
    assert not read
    assert refusal.value.retry_after_s > 0
    first.close()
    first.close()
    assert budget.used == 0


def test_what_a_body_inflates_to_counts_as_in_flight():
    budget = InFlight(1_000_000)
    with collect(gzip.compress(b"x" * 600_000, mtime=0), "gzip", budget=budget):
        assert budget.used >= 600_000
        with pytest.raises(TooMany):
            collect(gzip.compress(b"x" * 600_000, mtime=0), "gzip", budget=budget)
    assert budget.used == 0


def test_a_body_that_is_alone_always_gets_through():
    budget = InFlight(1000)
    with collect(b"x" * 300_000, budget=budget) as body:
        assert body.lines == [b"x" * 300_000]
    assert budget.used == 0


def test_a_sender_that_breaks_off_gives_everything_back():
    budget = InFlight(1 << 20)

    async def chunks():
        yield b"x" * 1000
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        asyncio.run(bodies.collect(chunks(), "identity", LIMITS, budget))
    assert budget.used == 0


@given(st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\r", b".")), max_size=20))
def test_gzip_reads_the_same_without_isal(lines):
    packed = gzip.compress(b"\n".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        with_isal = collect(packed, "gzip").lines
        patch.setattr(bodies, "gzip_codec", zlib)
        assert collect(packed, "gzip").lines == with_isal


BOMB = """
import asyncio, gzip, zstandard, io, sys
from inspector import bodies
from inspector.errors import BadSubmission
from inspector.settings import Limits

def peak_kb():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

async def once(body):
    yield body

def post(body, encoding):
    try:
        asyncio.run(bodies.collect(once(body), encoding, Limits(), bodies.InFlight(192 << 20)))
    except BadSubmission as refusal:
        return refusal.status_code
    return 200

def zstd_bomb(line):
    out, compressor = io.BytesIO(), zstandard.ZstdCompressor(level=1, write_content_size=False).compressobj()
    for _ in range(1024):
        out.write(compressor.compress(line * ((1 << 20) // len(line))))
    out.write(compressor.flush())
    return out.getvalue()

post(zstandard.compress(b"{}" * 9_000_000), "zstd"); post(gzip.compress(b"{}" * 9_000_000, mtime=0), "gzip")  # what any body costs
encoding, content = sys.argv[1], bytes.fromhex(sys.argv[2])
body = zstd_bomb(content) if encoding == "zstd" else gzip.compress(content * ((300 << 20) // len(content)), 1)
open("/proc/self/clear_refs", "w").write("5")
before = peak_kb()
status = post(body, encoding)
print(status, len(body), (peak_kb() - before) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize(("encoding", "content"), [("zstd", b"\0"), ("zstd", b"{}\n\n"), ("gzip", b"\0")])
def test_a_bomb_is_refused_and_costs_no_memory(encoding, content):
    done = subprocess.run([sys.executable, "-c", BOMB, encoding, content.hex()], capture_output=True, text=True, timeout=120, check=False)
    assert not done.stderr
    status, size, megabytes = map(int, done.stdout.split())
    assert status == 413
    assert size < 2 << 20
    assert megabytes <= 16  # the first piece that shows it, 8 MiB, is joined from smaller ones
