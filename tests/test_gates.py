"""The door refuses what could not be kept; the reader reads all that the door lets through."""

import base64
import contextlib
import hashlib
import json
import struct
import sys

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inspector import envelope_text
from inspector.errors import BadSubmission, TooLarge
from inspector.gates import admit, read
from inspector.settings import Limits
from inspector.signatures.transcript import content_hash
from inspector.trajectory import Envelope, Posted, Source, Step

LIMITS = Limits()
DOCUMENT = {
    "schema_version": "ATIF-v1.8",
    "agent": {"name": "terminus", "version": "2"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "Fix it."},
        {
            "step_id": 2,
            "source": "agent",
            "message": "",
            "tool_calls": [{"tool_call_id": "a", "function_name": "bash", "arguments": {"command": "ls"}}],
            "observation": {"results": [{"source_call_id": "a", "content": "README"}]},
        },
    ],
}


def envelope(**changes):
    plain = {"id": "e1", "environment": {"id": "acme/terminal", "version": "1"}, "task": {"id": "t"}, "reward": 1.0, "trajectory": DOCUMENT}
    return {**plain, **changes}


def line(**changes):
    return json.dumps(envelope(**changes)).encode()


def with_text(document: str, before: str = "", after: str = "") -> bytes:
    """A line whose document and surroundings are the given JSON text."""
    head = '"id":"e1","environment":{"id":"a/b","version":"1"},"task":{"id":"t"},"reward":null'
    return f'{{{before}{head},"trajectory":{document}{after}}}'.encode()


def refusal(posted: bytes, limits: Limits = LIMITS) -> BadSubmission:
    with pytest.raises(BadSubmission) as caught:
        admit(posted, limits)
    return caught.value


# --- the door ----------------------------------------------------------------------------------------------------------


def test_an_admitted_line_keeps_its_bytes_and_their_hash():
    posted = line()
    admitted = admit(posted + b"\n", LIMITS)
    assert admitted.line == posted
    assert admitted.sha256 == hashlib.sha256(posted).digest()
    assert json.loads(bytes(admitted.envelope.trajectory)) == DOCUMENT


@pytest.mark.parametrize(
    ("changes", "path", "named"),
    [
        ({"id": 7}, "$.id", "7"),
        ({"id": ""}, "$.id", '""'),
        ({"id": "a\x00b"}, "$.id", "\\u0000"),
        ({"id": "a\u2028b"}, "$.id", "u{2028}"),
        ({"id": "x" * 201}, "$.id", "xxx"),
        ({"environment": {"id": 5, "version": "1"}}, "$.environment.id", "5"),
        ({"environment": {"id": "a/b"}}, "$.environment.version", "missing"),
        ({"reward": "1.0"}, "$.reward", '"1.0"'),
        ({"reward": True}, "$.reward", "true"),
        ({"rewards": {"ok": None, "bad": {"score": "high"}}}, "$.rewards.bad.score", '"high"'),
        ({"run": {"id": "r", "work": "play"}}, "$.run.work", "play"),
        ({"errors": [{}, {"boundary": "moon"}]}, "$.errors[1].boundary", "moon"),
        ({"sampled": 0}, "$.sampled", "0"),
        ({"started_at": "yesterday"}, "$.started_at", "yesterday"),
        ({"artifacts": [{"sha256": "zz"}]}, "$.artifacts[0].sha256", "zz"),
        ({"trajectory": [1]}, "$.trajectory", "[1]"),
        ({"trajectory": None}, "$.trajectory", "null"),
        ({"trajectory": "{}"}, "$.trajectory", '"{}"'),
    ],
)
def test_a_refusal_names_the_field_and_the_value(changes, path, named):
    error = refusal(line(**changes))
    assert error.path == path
    assert named in error.reason


@pytest.mark.parametrize("field", ["id", "environment", "task", "reward", "trajectory"])
def test_what_is_required_is_named_when_missing(field):
    whole = envelope()
    del whole[field]
    error = refusal(json.dumps(whole).encode())
    assert (error.path, error.reason) == (f"$.{field}", "required, and missing")


@pytest.mark.parametrize(
    ("posted", "path"),
    [
        (b"", "$"),
        (b"{", "$"),
        (b"[]", "$"),
        (b"null", "$"),
        (b"1e999", "$"),
        (line() + b"}", "$"),
        (b"\xef\xbb\xbf" + line(), "$"),
        (line().replace(b"Fix it.", b"\xff"), "$"),
        (line(extra={"x": "Q"}).replace(b"Q", b"\xed\xa0\x80"), "$"),
        (with_text('{"a":"\\ud800"}'), "$"),
        (with_text('{"a":NaN}'), "$"),
        (with_text('{"a":"\x00"}'), "$"),
        (with_text("{}", after=',"extra":{"a":"\\udc00 "}'), "$"),
        (with_text("[" * 20_000 + "]" * 20_000), "$"),
        (with_text('{"a":' + "[" * 20_000 + "]" * 20_000 + "}"), "$"),
        (with_text("{}", after=',"extra":{"a":1e400}'), "$.extra.a"),
        (with_text("{}", after=',"mine":[0,-1e999]'), "$.mine[1]"),
        (with_text("{}", after=',"mine":' + "9" * 5000), "$.mine"),
        (with_text("{}").replace(b"null", b"-1e999"), "$.reward"),
        (with_text("{}").replace(b"null", b"1" + b"0" * 400), "$.reward"),
        (with_text("{}", after=',"extra":' + '{"a":' * 64 + "1" + "}" * 64), "$"),
        (with_text("{}", after=',"mine":' + "[" * 500 + "]" * 500), "$"),
    ],
)
def test_what_cannot_be_kept_is_refused(posted, path):
    assert refusal(posted).path == path


@pytest.mark.parametrize("first", ['"reward":1e999', '"id":5', '"extra":{"a":1e999}', '"rewards":{"\\u0000":5}', '"rewards":{"a":{"score":"x"}}'])
@pytest.mark.parametrize("then", ["[" * 20_000, '"extra":' + "[" * 960 + "1" + "]" * 960 + "}", '"\\ud800"}', "}"])
def test_a_line_that_is_wrong_twice_is_refused_once(first, then):
    assert refusal(f"{{{first},{then}".encode()).path


@pytest.mark.parametrize("levels", range(850, 1010, 3))
def test_a_nesting_near_the_decoders_own_limit_is_admitted_or_refused(levels):
    deep = '{"a":' * levels + "1" + "}" * levels
    for posted in (with_text(deep), with_text(deep, before=f'"extra":{{"trajectory":{deep}}},'), with_text("{}", after=f',"mine":{{"b":1,"b":1}},"c":{deep}')):
        with contextlib.suppress(BadSubmission):
            assert read(admit(posted, LIMITS).line).id == "e1"


def test_nesting_up_to_the_limit_is_admitted():
    admit(with_text("{}", after=',"extra":' + '{"a":' * 63 + "1" + "}" * 63), LIMITS)


def test_a_line_over_the_limit_is_too_large():
    posted = line()
    admit(posted, Limits(line_bytes=len(posted)))
    assert isinstance(refusal(posted, Limits(line_bytes=len(posted) - 1)), TooLarge)


@pytest.mark.parametrize(
    ("posted", "path"),
    [
        (with_text("{}", before='"id":"e0",'), "$.id"),
        (with_text("{}", before='"\\u0069d":"e0",'), "$.id"),
        (with_text("{}", after=',"task":{"id":"t","id":"u"}').replace(b'"task":{"id":"t"},', b""), "$.task.id"),
        (with_text("{}", after=',"extra":{"a":[{"b":1,"b":1}]}'), "$.extra.a[0].b"),
        (with_text("{}", after=',"mine":1,"mine":2'), "$.mine"),
        (with_text("{}", before='"trajectory":{},'), "$.trajectory"),
        (with_text("{}", before='"trajectory":{"a":1},'), "$.trajectory"),
        (with_text("{}", before='"tr\\u0061jectory":{},'), "$.trajectory"),
        (with_text("{}", before='"tr\\u0061jectory":{"a":1},'), "$.trajectory"),
        (with_text('{"steps":[]}', after=',"tr\\u0061jectory":{}'), "$.trajectory"),
        (with_text("{}", before='"extra":{"trajectory":{}},"trajectory":1,'), "$.trajectory"),
    ],
)
def test_a_key_that_stands_twice_is_refused(posted, path):
    error = refusal(posted)
    assert error.path == path
    assert "twice" in error.reason


@pytest.mark.parametrize(
    "posted",
    [
        with_text('{"a":1,"a":2}'),  # inside the document a repeated key is the document's own affair
        with_text('{"a":1}', before='"extra":{"trajectory":{"a":1}},'),
        with_text("{}", before='"extra":{"x":"\\"trajectory\\":{}"},'),
        with_text("{}", before='"extra":{"trajectory": {},"b":["{}",{}]},'),
        with_text("{}", after=',"extra":{"trajectory":{}}'),
        with_text('{ ",": 1 }', before='"extra":{"trajectory":"{ ",": 1 }":2},'),
        with_text("{}").replace(b'"trajectory"', b'"\\u0074rajectory"'),
        with_text("{}", before='"extra":{"trajectory":{}},')
        .replace(b'"trajectory":{}}', b'"trajectory":{}}')
        .replace(b'null,"trajectory"', b'null,"traject\\u006fry"'),
        with_text("{}").replace(b'"trajectory":', b'"trajectory" \n\t: '),
    ],
)
def test_the_documents_text_may_occur_elsewhere(posted):
    admitted = admit(posted, LIMITS)
    assert read(admitted.line).id == "e1"


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["trajectory", "id", "a"]), inner),
        max_leaves=8,
    ),
    st.booleans(),
)
def test_no_sound_envelope_is_refused_for_what_it_holds(extra, first):
    whole = envelope(trajectory={"a": extra})
    held = {"extra": {"trajectory": {"a": extra}, "b": extra}}
    posted = json.dumps({**held, **whole} if first else {**whole, **held}).encode()
    assert json.loads(bytes(admit(posted, LIMITS).envelope.trajectory)) == {"a": extra}


@settings(max_examples=300)
@given(st.text('{}[]",:\\\\u0022 ae19', max_size=60), st.booleans())
@example('"a":1,"a":1', True)
@example('"a":{"id":1,"id":2}', False)
@example('"id":"e1"', True)
@example('"a":"\\u0022","b":1,"b":2', False)
@example(f'"a":{"9" * 400}', False)
@example('"trajectory":0', True)
@example('"trajectory":0', False)
def test_the_quick_look_passes_nothing_that_the_whole_one_refuses(text, first):
    extra = {"before": f"{text}," if first else "", "after": "" if first else f",{text}"}
    posted = with_text('{"steps":[]}', **extra)
    answers = []
    for quick in (envelope_text._plainly_right, lambda *_: False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(envelope_text, "_plainly_right", quick)
            try:
                answers.append(admit(posted, LIMITS).sha256)
            except BadSubmission as error:
                answers.append((error.path, error.reason))
    assert answers[0] == answers[1]


# --- the reader --------------------------------------------------------------------------------------------------------


def test_a_tidy_record_has_no_defect_and_nothing_unknown():
    trajectory = read(line(), "key")
    assert (trajectory.defects, trajectory.unknown, trajectory.key) == ((), (), "key")
    assert trajectory.document == msgspec.json.decode(line(), type=Posted).trajectory


def test_unknown_fields_are_listed_and_are_no_defects():
    step = {"step_id": 1, "source": "user", "message": "x", "mood": "fine"}
    trajectory = read(line(mine=1, rewards={"tests": {"score": 0, "note": "x"}}, trajectory={**DOCUMENT, "steps": [step], "odd key": 2}))
    assert set(trajectory.unknown) == {"$.mine", "$.rewards[*].note", "$.trajectory.'odd key'", "$.trajectory.steps[*].mood"}
    assert trajectory.defects == ()


def test_a_reading_keeps_every_step_it_can():
    steps = [{"step_id": "1", "source": "user", "message": {"text": "hi"}}, "junk", {"source": "tool", "message": "out"}, DOCUMENT["steps"][1]]
    trajectory = read(line(trajectory={**DOCUMENT, "steps": steps}))
    assert [step.step_id for step in trajectory.steps] == [1, 2, 3, 2]
    assert trajectory.steps[0].message == '{"text":"hi"}'
    assert trajectory.steps[1] == Step(step_id=2, source=Source.SYSTEM)
    assert trajectory.steps[3].tool_calls[0].arguments == {"command": "ls"}
    paths = {defect.path for defect in trajectory.defects}
    assert paths >= {
        "$.trajectory.steps[0].step_id",
        "$.trajectory.steps[0].message",
        "$.trajectory.steps[1]",
        "$.trajectory.steps[2].source",
        "$.trajectory.steps[3].step_id",
    }
    assert not any(defect.grave for defect in trajectory.defects)


@pytest.mark.parametrize(
    ("arguments", "kept", "extra"), [('{"command":"ls"}', {"command": "ls"}, None), ("ls -l", {}, {"raw_arguments": "ls -l"}), (7, {}, None)]
)
def test_arguments_that_are_no_object_are_kept_as_far_as_they_can(arguments, kept, extra):
    call = {"tool_call_id": "a", "function_name": "bash", "arguments": arguments}
    trajectory = read(line(trajectory={**DOCUMENT, "steps": [{"step_id": 1, "source": "agent", "message": "", "tool_calls": [call]}]}))
    assert [(found.arguments, found.extra) for found in trajectory.steps[0].tool_calls] == [(kept, extra)]
    assert [defect.path for defect in trajectory.defects] == ["$.trajectory.steps[0].tool_calls[0].arguments"]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("1e999", "not a finite number"),
        ("-1e999", "not a finite number"),
        ("9" * 5000, "5000 digits"),
        ("[" * 70 + "]" * 70, "deeper"),
        ('{"b":' * 900 + "1" + "}" * 900, "deeper"),
    ],
)
@pytest.mark.parametrize("field", ["extra", "mine"])
def test_what_the_document_may_not_hold_is_a_defect_with_its_place(value, reason, field):
    steps = json.dumps(DOCUMENT["steps"])
    posted = with_text(f'{{"schema_version":"ATIF-v1.8","agent":{{"name":"a","version":"1"}},"steps":{steps},"{field}":{{"a":{value}}}}}')
    trajectory = read(admit(posted, LIMITS).line)
    assert len(trajectory.steps) == 2
    assert trajectory.defects
    assert all(defect.path.startswith(f"$.trajectory.{field}.a") and reason in defect.message for defect in trajectory.defects)


def test_a_reader_on_a_deeper_stack_than_the_door_still_reads():
    posted = admit(with_text('{"steps":[],"extra":{"a":' + "[" * 600 + "]" * 600 + "}}"), LIMITS).line

    def deeper(levels):
        return read(posted) if levels == 0 else deeper(levels - 1)

    assert deeper(sys.getrecursionlimit() // 2).id == "e1"


def test_many_defects_are_counted_not_listed():
    steps = [{"step_id": at + 1, "source": "user", "message": None} for at in range(1000)]
    defects = read(line(trajectory={**DOCUMENT, "steps": steps})).defects
    assert len(defects) == 201
    assert defects[-1].message == "and 800 more defects, not listed one by one"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)
NAMES = [
    "steps",
    "step_id",
    "source",
    "message",
    "tool_calls",
    "arguments",
    "observation",
    "results",
    "metrics",
    "agent",
    "subagent_trajectories",
    "trajectory_id",
    "extra",
    "content",
]
likely = st.recursive(
    json_values | st.sampled_from(["agent", "user", "text", 10**400, "1e999", 1.0]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=20,
)


def places(value, at=()):
    yield at
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*at, name))


def replaced(value, at, new):
    if not at:
        return new
    copy = value.copy()
    copy[at[0]] = replaced(copy[at[0]], at[1:], new)
    return copy


SUBAGENT = {**DOCUMENT, "trajectory_id": "sub"}
RICH = {
    **DOCUMENT,
    "subagent_trajectories": [SUBAGENT],
    "final_metrics": {"total_steps": 2},
    "steps": [
        *DOCUMENT["steps"],
        {
            "step_id": 3,
            "source": "agent",
            "message": [{"type": "image", "source": {"media_type": "image/png", "path": "a"}}],
            "metrics": {"prompt_tokens": 3, "logprobs": [-0.1]},
            "llm_call_count": 1,
            "timestamp": "2026-01-01",
        },
    ],
}


@given(st.dictionaries(st.sampled_from(NAMES), likely))
@example({"steps": None})
@example({"steps": [None, 1, [], {}]})
def test_the_reader_never_raises_on_any_object(document):
    trajectory = read(admit(json.dumps(envelope(trajectory=document)).encode(), LIMITS).line)
    assert content_hash(trajectory)
    msgspec.json.encode(trajectory.document)


@settings(max_examples=300)
@given(st.sampled_from([at for at in places(RICH) if at]), likely)
def test_the_reader_never_raises_on_any_mutation_and_keeps_the_steps(at, new):
    document = replaced(RICH, at, new)
    trajectory = read(admit(json.dumps(envelope(trajectory=document)).encode(), LIMITS).line)
    assert content_hash(trajectory)
    if at != ("steps",):
        assert len(trajectory.steps) == 3


# --- token arrays ------------------------------------------------------------------------------------------------------


def tokens(count=3, **changes):
    packed = {"ids": struct.pack(f"<{count}i", *range(count)), "loss_mask": bytes(count), "logprobs": struct.pack(f"<{count}f", *[-0.5] * count)}
    return {**{name: base64.b64encode(value).decode() for name, value in packed.items()}, "spans": [[1, 0, 1], [2, 1, 3]], **changes}


def b64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def test_sound_tokens_have_no_defect():
    assert read(line(tokens=tokens())).defects == ()


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"ids": "*"}, "$.tokens.ids"),
        ({"ids": "é"}, "$.tokens.ids"),
        ({"ids": b64(b"abcde")}, "$.tokens.ids"),
        ({"ids": b64(struct.pack("<3i", 1, -2, 3))}, "$.tokens.ids"),
        ({"loss_mask": b64(b"\x00\x01")}, "$.tokens"),
        ({"loss_mask": b64(b"\x00\x01\x02")}, "$.tokens.loss_mask"),
        ({"logprobs": b64(struct.pack("<3f", 0, float("nan"), 0))}, "$.tokens.logprobs"),
        ({"logprobs": b64(struct.pack("<3f", 0, float("-inf"), 0))}, "$.tokens.logprobs"),
        ({"spans": [[1, 0, 4]]}, "$.tokens.spans[0]"),
        ({"spans": [[1, -1, 2]]}, "$.tokens.spans[0]"),
        ({"spans": [[1, 2, 1]]}, "$.tokens.spans[0]"),
        ({"spans": [[2, 1, 3], [1, 0, 1]]}, "$.tokens.spans[1]"),
        ({"spans": [[1, 0, 2], [2, 1, 3]]}, "$.tokens.spans[1]"),
        ({"spans": [[9, 0, 1]]}, "$.tokens.spans[0]"),
        ({"spans": [[10**30, 0, 1]]}, "$.tokens.spans[0]"),
    ],
)
def test_tokens_that_would_teach_the_wrong_thing_are_a_grave_defect(changes, path):
    defects = read(admit(line(tokens=tokens(**changes)), LIMITS).line).defects
    assert path in [defect.path for defect in defects if defect.grave]


# --- laws --------------------------------------------------------------------------------------------------------------

scores = st.none() | st.just(0.0) | st.just(0) | st.floats(allow_nan=False, allow_infinity=False)


@given(
    scores,
    st.dictionaries(st.text("abc", min_size=1), st.none() | st.fixed_dictionaries({}, optional={"score": scores, "weight": scores}), max_size=3),
    st.booleans(),
)
def test_not_scored_and_scored_zero_are_never_confused(reward, rewards, tidy):
    document = DOCUMENT if tidy else {"steps": 5, "x": 1}
    posted = line(reward=reward, rewards=rewards, trajectory=document)
    for seen in (admit(posted, LIMITS).envelope, read(posted)):
        assert (seen.reward is None) == (reward is None)
        assert seen.reward == reward
        for name, component in rewards.items():
            kept = seen.rewards[name]
            assert (kept is None) == (component is None)
            assert component is None or kept.score == component.get("score")
            assert component is None or (kept.score is None) == (component.get("score") is None)


identifiers = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=20)


@given(identifiers, identifiers, scores, st.none() | st.dictionaries(st.text(max_size=5), json_values, max_size=3))
def test_an_envelope_survives_the_round_trip(name, version, reward, extra):
    posted = msgspec.json.encode(envelope(id=name, environment={"id": "a/b", "version": version}, reward=reward, extra=extra))
    once = admit(posted, LIMITS)
    again = admit(msgspec.json.encode(once.envelope), LIMITS)
    for field in Envelope.__struct_fields__:
        if field != "trajectory":
            assert getattr(again.envelope, field) == getattr(once.envelope, field)
    assert bytes(again.envelope.trajectory) == bytes(once.envelope.trajectory)
    assert (once.envelope.id, once.envelope.environment.version, once.envelope.extra) == (name, version, extra)
    assert msgspec.json.encode(read(posted).header) == msgspec.json.encode(msgspec.json.decode(posted, type=Posted))


@pytest.mark.parametrize(
    ("step", "defect"),
    [
        ({"step_id": 1, "source": "agent", "message": "again, and again"}, "250000 steps, the limit is 100000: only the first of them are read"),
        ({}, "250000 steps, the limit is 100000: only the first of them are read"),
    ],
    ids=["tidy", "empty"],
)
def test_of_more_steps_than_any_deadline_allows_the_first_are_read(step, defect):
    steps = b",".join([json.dumps(step).encode()] * 250_000)
    line = json.dumps(envelope(trajectory={"schema_version": "ATIF-v1.8", "agent": {"name": "a", "version": "1"}, "steps": []}, extra={"a": "b, c"}))
    found = read(line.encode().replace(b'"steps": []', b'"steps": [%b]' % steps))
    assert len(found.steps) == 100_000
    assert ("$.trajectory.steps", defect) in [(d.path, d.message) for d in found.defects]
    assert found.header.extra == {"a": "b, c"}
