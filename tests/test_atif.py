"""The rules of ATIF, with the reference models as the oracle."""

import copy
import json

import atif
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from inspector.gates import read

STEP = {"step_id": 1, "source": "agent", "message": "ok"}
CALL = {"tool_call_id": "a", "function_name": "f", "arguments": {}}


def line(document):
    head = {"id": "e", "environment": {"id": "a/b", "version": "1"}, "task": {"id": "t"}, "reward": None}
    return json.dumps({**head, "trajectory": document}).encode()


def document(*steps, **changes):
    return {"schema_version": "ATIF-v1.8", "agent": {"name": "a", "version": "1"}, "steps": list(steps) or [STEP], **changes}


def step(**changes):
    return document({**STEP, **changes})


def without(whole, name):
    return {key: value for key, value in whole.items() if key != name}


def observed(**result):
    return step(tool_calls=[CALL], observation={"results": [result]})


def part(**fields):
    return step(message=[fields])


def accepted(posted) -> bool:
    """By the reference models; strictly, since `"1"` for a number is a defect to us, which they take in silence otherwise."""
    try:
        atif.Trajectory.model_validate_json(json.dumps(posted), strict=True)
    except ValidationError:
        return False
    return True


PNG, WAV = {"media_type": "image/png", "path": "a.png"}, {"media_type": "audio/wav", "path": "a.wav"}
AT = "$.trajectory.steps[0]"
REFUSED = [
    ("schema_version", without(document(), "schema_version"), "$.trajectory.schema_version"),
    ("agent", without(document(), "agent"), "$.trajectory.agent"),
    ("agent name", document(agent={"version": "1"}), "$.trajectory.agent.name"),
    ("agent version", document(agent={"name": "a"}), "$.trajectory.agent.version"),
    ("steps", without(document(), "steps"), "$.trajectory.steps"),
    ("steps null", document(steps=None), "$.trajectory.steps"),
    ("first step_id", step(step_id=0), f"{AT}.step_id"),
    ("step_id order", document(STEP, {**STEP, "step_id": 3}), "$.trajectory.steps[1].step_id"),
    ("step_id missing", document(without(STEP, "step_id")), f"{AT}.step_id"),
    ("step_id type", step(step_id="1"), f"{AT}.step_id"),
    ("source", step(source="tool"), f"{AT}.source"),
    ("message missing", document(without(STEP, "message")), f"{AT}.message"),
    ("message type", step(message=5), f"{AT}.message"),
    ("timestamp", step(timestamp="yesterday"), f"{AT}.timestamp"),
    *(
        (f"agent only {name}", step(source="user", **{name: value}), f"{AT}.{name}")
        for name, value in {"model_name": "m", "reasoning_effort": "low", "reasoning_content": "", "tool_calls": [], "metrics": {}}.items()
    ),
    ("llm_call_count below 0", step(llm_call_count=-1), f"{AT}.llm_call_count"),
    ("llm_call_count 0 metrics", step(llm_call_count=0, metrics={}), f"{AT}.metrics"),
    ("llm_call_count 0 reasoning", step(llm_call_count=0, reasoning_content="x"), f"{AT}.reasoning_content"),
    ("metrics type", step(metrics={"prompt_tokens": "many"}), f"{AT}.metrics.prompt_tokens"),
    ("metrics logprobs", step(metrics={"logprobs": [None]}), f"{AT}.metrics.logprobs[0]"),
    ("final metrics", document(final_metrics={"total_steps": 1.5}), "$.trajectory.final_metrics.total_steps"),
    ("tool call name", step(tool_calls=[without(CALL, "function_name")]), f"{AT}.tool_calls[0].function_name"),
    ("tool call arguments", step(tool_calls=[{**CALL, "arguments": "{}"}]), f"{AT}.tool_calls[0].arguments"),
    ("tool calls type", step(tool_calls={}), f"{AT}.tool_calls"),
    ("source_call_id", observed(source_call_id="b", content="x"), f"{AT}.observation.results[0].source_call_id"),
    ("source_call_id, no call", step(tool_calls=[], observation={"results": [{"source_call_id": "b"}]}), f"{AT}.observation.results[0].source_call_id"),
    ("results", step(observation={}), f"{AT}.observation.results"),
    ("subagent ref", observed(subagent_trajectory_ref=[{"session_id": "s"}]), f"{AT}.observation.results[0].subagent_trajectory_ref[0]"),
    ("subagent ref type", observed(subagent_trajectory_ref=[{"trajectory_id": 5}]), f"{AT}.observation.results[0].subagent_trajectory_ref[0].trajectory_id"),
    ("part type", part(type="video", source=PNG), f"{AT}.message[0]"),
    ("text without text", part(type="text"), f"{AT}.message[0]"),
    ("text with source", part(type="text", text="x", source=PNG), f"{AT}.message[0]"),
    ("image without source", part(type="image"), f"{AT}.message[0]"),
    ("image with text", part(type="image", text="x", source=PNG), f"{AT}.message[0]"),
    ("image of sound", part(type="image", source=WAV), f"{AT}.message[0]"),
    ("sound of image", part(type="audio", source=PNG), f"{AT}.message[0]"),
    ("sound shorter than nothing", part(type="audio", source={**WAV, "duration_sec": -1}), f"{AT}.message[0]"),
    ("image without path", part(type="image", source={"media_type": "image/png"}), f"{AT}.message[0]"),
    ("observed part", observed(content=[{"type": "text"}]), f"{AT}.observation.results[0].content[0]"),
    ("subagent without id", document(subagent_trajectories=[document()]), "$.trajectory.subagent_trajectories[0].trajectory_id"),
    ("subagents of one id", document(subagent_trajectories=[document(trajectory_id="s")] * 2), "$.trajectory.subagent_trajectories[1].trajectory_id"),
    (
        "rule in a subagent",
        document(subagent_trajectories=[{**step(step_id=2), "trajectory_id": "s"}]),
        "$.trajectory.subagent_trajectories[0].steps[0].step_id",
    ),
    (
        "type in a subagent",
        document(subagent_trajectories=[{**step(step_id="1"), "trajectory_id": "s"}]),
        "$.trajectory.subagent_trajectories[0].steps[0].step_id",
    ),
    ("subagent no object", document(subagent_trajectories=[5]), "$.trajectory.subagent_trajectories[0]"),
]


@pytest.mark.parametrize(("posted", "path"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_the_reference_refuses_is_a_defect_at_its_place(posted, path):
    assert not accepted(posted)
    defects = read(line(posted)).defects
    assert path in [defect.path for defect in defects]
    assert not any(defect.grave for defect in defects)


ACCEPTED = [
    document(),
    document(steps=[]),
    *(document(schema_version=f"ATIF-v1.{minor}") for minor in range(9)),
    step(llm_call_count=0),
    step(llm_call_count=0, source="user"),
    step(timestamp="2025-10-16T14:30:00Z"),
    step(timestamp="2025-10-16"),
    step(reasoning_effort=0.5, reasoning_content="x", model_name="m", metrics={"cost_usd": 1, "extra": {"a": [[]]}}, tool_calls=[CALL]),
    step(source="system", observation={"results": [{"source_call_id": "b"}]}),
    observed(source_call_id="a", content=[{"type": "text", "text": ""}], subagent_trajectory_ref=[{"trajectory_path": "p"}]),
    part(type="image", source=PNG),
    part(type="audio", source={"media_type": " Audio/MP3", "path": "x", "duration_sec": 0}),
    document(subagent_trajectories=[document(trajectory_id="s", subagent_trajectories=[document(trajectory_id="s")])]),
    document(subagent_trajectories=[]),
    document(agent={"name": "a", "version": "1", "tool_definitions": [{"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": [1]}}}}}}}}}]}),
]


@pytest.mark.parametrize("posted", ACCEPTED)
def test_what_the_reference_accepts_has_no_defect(posted):
    assert accepted(posted)
    trajectory = read(line(posted))
    assert (trajectory.defects, trajectory.unknown) == ((), ())


def test_versions_that_nobody_published_are_a_defect():
    assert [defect.path for defect in read(line(document(schema_version="ATIF-v2.0"))).defects] == ["$.trajectory.schema_version"]


def maybe(**fields):
    return st.fixed_dictionaries({}, optional={name: st.none() | value for name, value in fields.items()})


def both(some, more):
    return st.builds(lambda one, two: {**one, **two}, some, more)


texts, free = st.sampled_from(["", "a", "b"]), st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=2)
counts = st.integers(-1, 3)
sources = st.sampled_from([PNG, WAV, {"media_type": "text/plain", "path": "x"}, {"path": "x"}])
parts = both(st.fixed_dictionaries({"type": st.sampled_from(["text", "image", "audio", "text"])}), maybe(text=texts, source=sources))
contents = texts | st.lists(parts, max_size=2)
calls = st.fixed_dictionaries({"tool_call_id": texts, "function_name": texts, "arguments": free}, optional={"extra": free})
references = maybe(trajectory_id=texts, trajectory_path=texts, session_id=texts)
results = maybe(source_call_id=texts, content=contents, subagent_trajectory_ref=st.lists(references, max_size=2), extra=free)
metrics = maybe(prompt_tokens=counts, cost_usd=st.floats(0, 1), logprobs=st.lists(st.floats(-1, 0), max_size=2), extra=free)
step_bodies = both(
    st.fixed_dictionaries({"source": st.sampled_from(["agent", "agent", "user", "system"]), "message": contents}),
    maybe(
        timestamp=st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01", "noon", ""]),
        model_name=texts,
        reasoning_effort=texts | st.floats(0, 1),
        reasoning_content=texts,
        tool_calls=st.lists(calls, max_size=2),
        observation=st.fixed_dictionaries({"results": st.lists(results, max_size=2)}),
        metrics=metrics,
        llm_call_count=counts,
        is_copied_context=st.booleans(),
        extra=free,
    ),
)


@st.composite
def documents(draw, levels=1):
    steps = [{**body, "step_id": at + 1} for at, body in enumerate(draw(st.lists(step_bodies, max_size=3)))]
    if steps and draw(st.integers(0, 9)) == 0:
        steps[-1]["step_id"] += 1
    made = document(**draw(maybe(session_id=texts, trajectory_id=texts, notes=texts, extra=free, final_metrics=maybe(total_steps=counts))), steps=steps)
    if levels and draw(st.booleans()):
        made["subagent_trajectories"] = draw(st.lists(documents(levels=levels - 1), max_size=2))
    return made


@given(documents())
def test_we_and_the_reference_agree_on_any_document(posted):
    before = copy.deepcopy(posted)
    assert (not read(line(posted)).defects) == accepted(posted)
    assert posted == before
