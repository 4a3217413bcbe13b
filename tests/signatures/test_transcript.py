"""The content of a trajectory is the same number for the same steps, and another for any other."""

import json

import pytest

from inspector.gates import read
from inspector.signatures.transcript import content_hash

CALL = {"tool_call_id": "a", "function_name": "bash", "arguments": {"command": "ls"}}
STEPS = [
    {"step_id": 1, "source": "user", "message": "Fix it."},
    {"step_id": 2, "source": "agent", "message": "", "tool_calls": [CALL], "observation": {"results": [{"source_call_id": "a", "content": "README"}]}},
]


def content(steps, **envelope):
    document = {"schema_version": "ATIF-v1.8", "agent": {"name": "terminus", "version": "2"}, "steps": steps}
    head = {"id": "e1", "environment": {"id": "acme/terminal", "version": "1"}, "task": {"id": "t"}, "reward": 1.0}
    return content_hash(read(json.dumps({**head, **envelope, "trajectory": document}).encode()))


def changed(**changes):
    return [STEPS[0], {**STEPS[1], **changes}]


def called(**arguments):
    return changed(tool_calls=[{**CALL, "arguments": arguments}])


def seen(*contents):
    return changed(observation={"results": [{"source_call_id": "a", "content": content} for content in contents]})


def test_ids_times_and_rewards_do_not_matter():
    call = {**CALL, "tool_call_id": "z"}
    other = changed(timestamp="2026-01-01", tool_calls=[call], observation={"results": [{"source_call_id": "z", "content": "README"}]}, extra={"x": 1})
    assert content(other, id="e2", reward=0.0, mine=3) == content(STEPS)
    assert len(content(STEPS)) == 16


IMAGE = {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}}
OTHERS = {
    "source": changed(source="user"),
    "system": [{**STEPS[0], "source": "system"}, STEPS[1]],
    "message": changed(message="x"),
    "no message": changed(message=None),
    "empty reasoning": changed(reasoning_content=""),
    "no call": changed(tool_calls=None),
    "another tool": changed(tool_calls=[{**CALL, "function_name": "sh"}]),
    "another argument's name": called(cmd="ls"),
    "an argument more": called(command="ls", cwd=""),
    "a number": called(command=1),
    "the same number as text": called(command="1"),
    "a large number": called(command="ls", n=2**70),
    "a list": called(command=["ls"]),
    "an observation": seen("READM"),
    "no observation": changed(observation=None),
    "two observations": seen("READ", "ME"),
    "the same text in one": seen("READ\nME"),
    "a part": seen([{"type": "text", "text": "README"}]),
    "an image": seen([IMAGE]),
    "another image": seen([{**IMAGE, "source": {**IMAGE["source"], "path": "b.png"}}]),
    "another order": STEPS[::-1],
    "a step less": STEPS[:1],
    "nothing": [],
}


def test_all_that_was_said_and_done_matters():
    found = {name: content(steps) for name, steps in {"as it was": STEPS, **OTHERS}.items()}
    assert len(set(found.values())) == len(found)


@pytest.mark.parametrize("text", ["\ud83d\ude00", "a\nb", "", "\u202e"], ids=ascii)
def test_the_same_text_has_the_same_content(text):
    assert content(changed(message=text)) == content(changed(message=text))
