"""Inspect logs: archives (deflated, stored, zstd) and documents, their letters, epochs, limits and attachments."""

import io
import json
import struct
import zipfile
import zlib

import pytest
import zstandard

from inspector import formats
from inspector.errors import UnreadableInput
from inspector.formats import _zip

from .conftest import checked

HEADER = {
    "version": 2,
    "status": "success",
    "eval": {"eval_id": "E1", "run_id": "R", "task": "sums", "task_version": 3, "model": "lab/m", "config": {"epochs": 1}},
}
SAMPLE = {
    "id": 7,
    "epoch": 1,
    "uuid": "u7",
    "input": "2+2?",
    "target": "4",
    "messages": [
        {"role": "user", "content": "attachment://aa", "source": "input"},
        {
            "role": "assistant",
            "content": [{"type": "reasoning", "reasoning": "easy"}, {"type": "text", "text": "4"}],
            "tool_calls": [{"id": "c", "function": "calc", "arguments": {"x": "2+2"}, "type": "function"}],
            "model": "m",
        },
        {"role": "tool", "tool_call_id": "c", "function": "calc", "content": "", "error": {"type": "timeout", "message": "too slow"}},
    ],
    "attachments": {"aa": "2+2?"},
    "output": {"model": "m", "choices": [{"stop_reason": "stop"}]},
    "scores": {"match": {"value": "C", "answer": "4"}},
    "model_usage": {"m": {"input_tokens": 5, "output_tokens": 1}},
    "events": [{"event": "model", "tools": [{"name": "calc"}]}],
    "started_at": "2026-11-26T08:00:00+01:00",
}


def archive(samples, header=HEADER, method=zipfile.ZIP_DEFLATED, name="header.json"):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as file:
        for at, sample in enumerate(samples):
            file.writestr(f"samples/{at}_epoch_1.json", sample if isinstance(sample, str) else json.dumps(sample))
        file.writestr(name, json.dumps(header))
    return packed.getvalue()


def zstd_archive(members):
    """A zip with method 93, written by hand since Python 3.11 cannot."""
    body, directory = b"", b""
    for name, raw in members.items():
        packed, label = zstandard.ZstdCompressor().compress(raw), name.encode()
        common = struct.pack("<HHHHHIIIHH", 63, 0, 93, 0, 0x21, zlib.crc32(raw), len(packed), len(raw), len(label), 0)
        directory += b"PK\x01\x02" + struct.pack("<H", 63) + common + struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + label
        body += b"PK\x03\x04" + common + label + packed
    return body + directory + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(directory), len(body), 0)


def test_a_sample_becomes_a_trajectory(envelopes):
    (envelope,) = envelopes(archive([SAMPLE]))
    user, agent = envelope["trajectory"]["steps"]
    assert user["message"] == "2+2?"
    assert (agent["message"], agent["reasoning_content"], agent["model_name"]) == ("4", "easy", "m")
    assert agent["tool_calls"] == [{"tool_call_id": "c", "function_name": "calc", "arguments": {"x": "2+2"}}]
    assert agent["observation"]["results"][0]["content"] == "too slow"
    assert (envelope["id"], envelope["reward"], envelope["rewards"]) == ("u7", 1.0, {"match": {"score": 1.0}})
    assert envelope["environment"] == {"id": "inspect/sums", "version": "3"}
    assert envelope["task"] == {"id": "7"}
    assert envelope["run"] == {"id": "E1", "trainer": "inspect_ai", "work": "eval", "step": None, "policy_version": None} or envelope["run"]["work"] == "eval"
    assert envelope["started_at"] == "2026-11-26T07:00:00Z"
    assert envelope["extra"]["inspect_eval"]["scores"] == SAMPLE["scores"]
    assert envelope["trajectory"]["agent"]["tool_definitions"] == [{"name": "calc"}]
    assert "group" not in envelope
    assert any("'C' is read as 1" in entry for entry in envelope["extra"]["import"]["lost"])


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_archives_and_documents_say_the_same(envelopes, method):
    samples = [SAMPLE, {**SAMPLE, "uuid": "u8", "scores": {"match": {"value": "I"}}}]
    raw = {"header.json": json.dumps(HEADER).encode(), **{f"samples/{at}.json": json.dumps(one).encode() for at, one in enumerate(samples)}}
    read = [envelopes(archive(samples, method=method)), envelopes(zstd_archive(raw)), envelopes({**HEADER, "samples": samples})]
    said = [[{name: one[name] for name in ("id", "reward", "trajectory", "environment")} for one in found] for found in read]
    assert said[0] == said[1] == said[2]
    assert [one["reward"] for one in said[0]] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("scores", "reward"),
    [
        ({"a": {"value": "P"}}, 0.5),
        ({"a": {"value": "N"}}, 0.0),
        ({"a": {"value": 0.25}}, 0.25),
        ({"a": {"value": True}}, 1.0),
        ({"a": {"value": "maybe"}}, None),
        ({"a": {"value": None}}, None),
        ({"a": {"value": 1}, "b": {"value": 0}}, None),
        ({"a": {"value": {"x": 1, "y": "C"}}}, None),
        ({"a": {"value": {"x": 1}}}, 1.0),
        ({}, None),
        (None, None),
    ],
)
def test_scores_map_to_rewards(envelopes, scores, reward):
    (envelope,) = envelopes(archive([{**SAMPLE, "scores": scores}]))
    assert envelope["reward"] == reward


def test_a_nan_score_is_null(envelopes):
    (envelope,) = envelopes(archive([json.dumps({**SAMPLE, "scores": {"a": {"value": float("nan")}}})]))
    assert envelope["reward"] is None
    assert envelope["rewards"] == {"a": None}


def test_epochs_of_one_sample_are_a_group(envelopes):
    header = {**HEADER, "eval": {**HEADER["eval"], "config": {"epochs": 2}}}
    first, second = envelopes(archive([SAMPLE, {**SAMPLE, "epoch": 2, "uuid": "v"}], header))
    assert first["group"] == {"id": "E1-7", "index": 0, "size": 2}
    assert second["group"] == {"id": "E1-7", "index": 1, "size": 2}


@pytest.mark.parametrize(
    ("more", "reason", "truncated"),
    [
        ({"limit": {"type": "message", "limit": 5}}, "max_steps", True),
        ({"limit": {"type": "time", "limit": 5}}, "timeout", True),
        ({"limit": {"type": "operator", "limit": 1}}, "cancelled", False),
        ({"error": {"message": "boo", "traceback": "…"}}, "error", None),
        ({"output": {"choices": [{"stop_reason": "model_length"}]}}, "max_tokens", True),
        ({}, "completed", None),
    ],
)
def test_limits_and_errors_end_the_episode(envelopes, more, reason, truncated):
    (envelope,) = envelopes(archive([{**SAMPLE, **more}]))
    assert (envelope["termination"]["reason"], envelope["termination"].get("truncated")) == (reason, truncated)
    assert bool(envelope.get("errors")) == ("error" in more)


def test_a_log_that_was_cut_short_has_its_journal(envelopes):
    assert len(envelopes(archive([SAMPLE], name="_journal/start.json"))) == 1


def test_a_bad_sample_is_refused_and_the_others_are_read(write):
    refused, odd, imported = formats.read(write(archive(["{cut", "[]", SAMPLE])))
    assert refused.source.endswith("!samples/0_epoch_1.json:1")
    assert odd.reason == "is not an object"
    checked(imported)


def test_a_damaged_member_is_refused(write):
    raw = bytearray(archive([SAMPLE]))
    raw[80] ^= 0xFF
    (found,) = formats.read(write(bytes(raw)))
    assert "damaged" in found.reason


def test_bombs_are_refused(write, monkeypatch):
    monkeypatch.setattr(_zip, "MEMBER_BYTES", 1 << 20)
    big = json.dumps({**SAMPLE, "x": " " * (2 << 20)})
    (found,) = formats.read(write(archive([big])))
    assert "more than is read" in found.reason
    lying = bytearray(archive([big]))
    lying[lying.rindex(b"PK\x01\x02", 0, lying.rindex(b"PK\x01\x02")) + 24 :][:4] = b""
    at = lying.index(b"PK\x01\x02")
    lying[at + 24 : at + 28] = struct.pack("<I", 1000)
    (found,) = formats.read(write(bytes(lying)))
    assert "damaged" in found.reason


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_are_not_read_are_named(write, method):
    with pytest.raises(UnreadableInput, match=r"header\.json:1: is compressed with method"):
        list(formats.read(write(archive([SAMPLE], method=method))))


def test_an_archive_without_a_header_is_no_log(write):
    path = write(archive([SAMPLE], name="other.json"))
    with pytest.raises(UnreadableInput, match="no importer knows this archive"):
        list(formats.read(path))
    with pytest.raises(UnreadableInput, match=r"no header\.json"):
        list(formats.read(path, "inspect_eval"))


def test_every_published_log_is_read(public_data):
    paths = sorted((public_data / "format_fixtures").glob("*.eval"))
    for path in paths:
        with zipfile.ZipFile(path) as file:
            samples = [json.loads(file.read(name)) for name in file.namelist() if name.startswith("samples/")]
        found = [checked(one) for one in formats.read(path)]
        letters = {"C": 1.0, "I": 0.0}
        assert [envelope["reward"] for envelope in found] == [letters[sample["scores"]["match"]["value"]] for sample in samples]
        assert [len(envelope["trajectory"]["steps"]) for envelope in found] == [len(sample["messages"]) for sample in samples]
        assert len({envelope["id"] for envelope in found}) == len(samples)
    assert paths
