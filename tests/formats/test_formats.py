"""What holds for every format: found by content, read within bounds, nothing lost in silence."""

import gzip
import json
import math
import pkgutil

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector import formats
from inspector.errors import UnreadableInput
from inspector.formats import _files

CHAT = {"id": "a", "messages": [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}], "reward": 1.0}
NATIVE = {
    "id": "n1",
    "environment": {"id": "acme/sums", "version": "1"},
    "task": {"id": "two"},
    "reward": 0.5,
    "trajectory": {"schema_version": "ATIF-v1.8", "agent": {"name": "x", "version": "1"}, "steps": [{"step_id": 1, "source": "user", "message": "hi"}]},
}


def test_every_module_of_the_package_is_a_format():
    modules = {module.name for module in pkgutil.iter_modules(formats.__path__) if not module.name.startswith("_")}
    assert set(formats.FORMATS) == modules >= {"native", "atif", "openai_chat", "nemo_gym", "swe_agent", "inspect_eval", "verifiers"}


def test_a_format_is_told_by_its_content_and_not_by_its_name(write):
    assert formats.detect(write([CHAT], "x.traj")) == "openai_chat"
    assert formats.detect(write([NATIVE], "x.eval")) == "native"
    assert formats.detect(write(NATIVE, "x.txt")) == "native"
    assert formats.detect(write([NATIVE["trajectory"]], "y")) == "atif"


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress, lambda raw: gzip.compress(raw[:40], mtime=0) + gzip.compress(raw[40:])])
def test_compressed_files_are_read_whatever_they_are_called(envelopes, pack):
    raw = "\n".join(json.dumps({**CHAT, "id": str(at)}) for at in range(3)).encode()
    assert [envelope["id"] for envelope in envelopes(pack(raw), "plain.jsonl")] == ["0", "1", "2"]


def test_zstd_frames_one_after_another_are_one_file(envelopes):
    rows = [(json.dumps({**CHAT, "id": str(at)}) + "\n").encode() for at in range(50)]
    assert len(envelopes(b"".join(map(zstandard.ZstdCompressor().compress, rows)))) == 50


def test_a_document_a_list_and_lines_are_the_same_rows(envelopes):
    rows = [CHAT, {**CHAT, "id": "b"}]
    ids = [
        [envelope["id"] for envelope in envelopes(text)] for text in (json.dumps(rows), json.dumps(rows, indent=1), "\n\n".join(map(json.dumps, rows)) + "\r\n")
    ]
    assert ids == [["a", "b"]] * 3
    assert len(envelopes("\ufeff" + json.dumps(CHAT))) == 1


def test_a_bad_line_among_good_ones_is_refused_with_its_place(write):
    path = write([CHAT, '{"messages": [', "[1, 2]", {**CHAT, "id": "d"}, b"\xff".decode("latin-1")])
    good, bad, odd, last, text = formats.read(path)
    assert isinstance(good, formats.Imported)
    assert bad == formats.Refused(f"{path}:2", bad.reason)
    assert "not JSON" in bad.reason
    assert odd.source == f"{path}:3"
    assert last.source == f"{path}:4"
    assert isinstance(text, formats.Refused)


def test_a_bad_first_line_does_not_hide_the_rest(write):
    refused, imported = formats.read(write(["{cut", CHAT]))
    assert isinstance(refused, formats.Refused)
    assert isinstance(imported, formats.Imported)


def test_a_line_that_is_not_utf8_is_refused(write):
    found = list(formats.read(write(json.dumps(CHAT).encode() + b'\n{"messages": "\xff"}\n')))
    assert "not UTF-8: byte 0xff" in found[1].reason


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"hello\nworld\n", ":1: not JSON"),
        (b'{"what": "ever"}', "no importer knows this rows of objects with the keys what"),
        (b'{\n"a": 1,\n"b": }\n', ":3: not JSON"),
        (b"PAR1xxxxxxxx", "Parquet"),
        (b"\x80\x04\x95xxxxxxx", "pickle"),
        (b"PK\x03\x04 not a zip", "not a readable zip"),
        (gzip.compress(b"{}" * 9000, mtime=0)[:-20], "cut short"),
        (b"\x1f\x8b\x08garbage", "damaged gzip"),
        (zstandard.ZstdCompressor().compress(b"{}\n" * 9000)[:-4], "cut short"),
        (b"\x28\xb5\x2f\xfdgarbage", "damaged zstd"),
    ],
)
def test_what_cannot_be_read_says_where_and_why(write, content, why):
    path = write(content, "odd")
    with pytest.raises(UnreadableInput) as caught:
        list(formats.read(path))
    assert str(path) in str(caught.value)
    assert why in str(caught.value)


def test_missing_paths_plain_folders_and_unknown_formats_are_unreadable(tmp_path, write):
    for path, format, why in [
        (tmp_path / "no", "auto", "no such file"),
        (tmp_path, "auto", "folder"),
        (write([CHAT]), "tar", "no format 'tar'"),
        (tmp_path, "native", "regular"),
    ]:
        with pytest.raises(UnreadableInput, match=why):
            list(formats.read(path, format))


def test_a_stream_that_breaks_keeps_what_came_before(write):
    raw = b"\n".join(json.dumps({**CHAT, "id": str(at), "noise": at**9}).encode() for at in range(4000))
    reading, found = formats.read(write(gzip.compress(raw, mtime=0)[:-3000])), []
    with pytest.raises(UnreadableInput, match=r":\d+: the gzip stream is cut short"):
        _gather(reading, found)
    assert len(found) > 100


def _gather(reading, found):
    for one in reading:
        found.append(one)


def test_a_bomb_is_stopped(write, monkeypatch):
    monkeypatch.setattr(_files, "INFLATED_BYTES", 1 << 20)
    for packed in (gzip.compress(b"\n" * (8 << 20)), zstandard.ZstdCompressor().compress(b"\n" * (8 << 20))):
        with pytest.raises(UnreadableInput, match="inflates to more than 1 MiB"):
            list(formats.read(write(packed)))


def test_a_line_that_is_too_long_is_skipped_without_being_kept(write, monkeypatch):
    monkeypatch.setattr(_files, "LINE_BYTES", 4096)
    _first, second, third = formats.read(write([CHAT, {**CHAT, "id": "x" * 200_000}, {**CHAT, "id": "c"}]))
    assert second.source.endswith(":2")
    assert "longer than" in second.reason
    assert third.source.endswith(":3")


def test_nan_becomes_null_and_is_listed(envelopes):
    (envelope,) = envelopes('{"messages": [{"role": "user", "content": "a"}], "reward": NaN, "x": [Infinity, 1e999]}')
    assert envelope["reward"] is None
    assert [entry.split(":")[0] for entry in envelope["extra"]["import"]["lost"]] == ["$.reward", "$.x[0]", "$.x[1]"]


def test_half_characters_are_replaced_and_listed(envelopes):
    (envelope,) = envelopes('{"messages": [{"role": "user", "content": "a\\ud800b"}], "reward": 0}')
    assert envelope["trajectory"]["steps"][0]["message"] == "a\ufffdb"
    assert "surrogate" in envelope["extra"]["import"]["lost"][0]


def test_what_is_nested_too_deeply_is_refused_or_folded(write, envelopes):
    row = {**CHAT, "deep": eval("[" * 80 + "]" * 80)}
    (envelope,) = envelopes([row])
    assert "[[[" in json.dumps(envelope["extra"])
    text = '{"messages": [{"role": "user", "content": "a"}], "x": ' + "[" * 100_000 + "]" * 100_000 + "}"
    assert [type(found) for found in formats.read(write([CHAT, text]))] == [formats.Imported, formats.Refused]


def test_ids_are_the_producers_or_follow_from_the_bytes(envelopes):
    row = {name: value for name, value in CHAT.items() if name != "id"}
    first, second = envelopes([row, row])
    assert first["id"] != second["id"]
    assert [first["id"], second["id"]] == [envelope["id"] for envelope in envelopes([row, row], "other.jsonl")]


def test_the_environment_is_the_files_own_then_the_callers_then_unknown(envelopes):
    own = {**CHAT, "environment": "lab/sums", "environment_version": "3"}
    asked = {"environment": "acme/x", "version": "9"}
    assert envelopes([own], **asked)[0]["environment"] == {"id": "lab/sums", "version": "3"}
    assert envelopes([CHAT], **asked)[0]["environment"] == {"id": "acme/x", "version": "9"}
    assert envelopes([CHAT], environment="x")[0]["environment"] == {"id": "local/x", "version": "0"}
    assert envelopes([CHAT])[0]["environment"] == {"id": "unknown/openai_chat", "version": "0"}
    assert envelopes([{**CHAT, "environment": "a/b/c d\n"}])[0]["environment"]["id"].count("/") == 1


def test_identifiers_are_made_printable(envelopes):
    (envelope,) = envelopes([{**CHAT, "id": "a\u202eb\n", "task_id": "t" * 500}])
    assert envelope["id"] == "a\\u{202e}b"
    assert len(envelope["task"]["id"]) <= 200


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = ["id", "role", "content", "tool_calls", "function", "name", "arguments", "reasoning", "environment", "task", "reward", "type", "source", "message"]
NAMES += ["steps", "step_id", "observation", "results", "extra", "metrics", "agent", "info", "history", "action", "scores", "eval", "nodes", "output", "input"]
NASTY = st.dictionaries(st.sampled_from(NAMES), VALUES | st.lists(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=5), max_size=3), max_size=8)
SHELLS = {
    "openai_chat": lambda x: {"messages": [x, {**x, "role": "assistant"}, {**x, "role": "tool"}], **x},
    "atif": lambda x: {"schema_version": "ATIF-v1.4", **x, "steps": [x, {**x, "source": "agent"}, {"tool_calls": [x], "observation": {"results": [x]}}]},
    "nemo_gym": lambda x: {
        **x,
        "responses_create_params": {"input": [x], **x},
        "response": {**x, "output": [x, {**x, "type": "function_call"}, {**x, "type": "reasoning"}]},
    },
    "swe_agent": lambda x: {
        **x,
        "trajectory": [x, {"action": "ls", "observation": "a", **x}],
        "history": [x, {**x, "role": "assistant"}],
        "info": {**x, "exit_status": "exit_x"},
    },
    "inspect_eval": lambda x: {
        "version": 2,
        "eval": {"task": "t", **x},
        "samples": [x, {**x, "messages": [x], "scores": x, "limit": x, "error": x, "output": {"choices": [x]}}],
    },
    "verifiers": lambda x: {
        **x,
        "env": x,
        "task": x,
        "run": {**x, "id": 1},
        "traces": [{**x, "nodes": [{"message": x, "parent": 5, "token_ids": [1], "mask": [True]}], "rewards": {"a": x}}],
    },
    "native": lambda x: {**x, "trajectory": {"steps": [x], **x}},
}


@pytest.mark.parametrize("name", SHELLS)
def test_no_importer_breaks_on_what_it_does_not_expect(tmp_path_factory, name):
    folder = tmp_path_factory.mktemp(name)

    @settings(max_examples=40, deadline=None)
    @given(NASTY)
    def holds(value):
        path = folder / "rows.jsonl"
        path.write_text(json.dumps(SHELLS[name](value)), encoding="utf-8")
        for found in formats.read(path, name):
            assert isinstance(found, (formats.Imported, formats.Refused))
            if isinstance(found, formats.Imported) and name != "native":
                reward = json.loads(found.line)["reward"]
                assert reward is None or math.isfinite(reward)

    holds()
