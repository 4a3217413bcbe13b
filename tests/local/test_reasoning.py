"""What is left of an episode without its agent's reasoning."""

import pytest

from inspector.local.reasoning import without_reasoning
from inspector.signatures.transcript import content_hash
from inspector.testing import odd_trajectories, trajectory


def agent(message, **about):
    steps = [{"step_id": 1, "source": "agent", "message": message, **about}]
    return without_reasoning(trajectory(steps=steps)).steps[0]


@pytest.mark.parametrize(
    "message",
    [
        "<think>SECRET</think>",
        "<think>SECRET",
        "SECRET</think>",
        "<thinking>\nSECRET\n</thinking>",
        "<THINK>SECRET</THINK>",
        "a<think>SECRET</think>b<think>SECRET</think>",
    ],
)
def test_a_block_of_thought_is_blanked_and_the_rest_keeps_its_place(message):
    step = agent(f"{message}ANSWER")
    if "SECRET</" in message.upper() or "</" in message:
        assert step.message.index("ANSWER") == len(message)
    assert "SECRET" not in repr(step)


def test_thinking_parts_and_what_harnesses_keep_of_it_go_too():
    step = agent(
        [{"type": "thinking", "text": "SECRET"}, {"type": "text", "text": "Done."}], reasoning_content="SECRET", extra={"thinking_blocks": "SECRET", "x": 1}
    )
    assert "SECRET" not in repr(step)
    assert [part.text for part in step.message] == ["Done."]
    assert step.extra == {"x": 1}


def test_what_others_said_stays():
    steps = [{"step_id": 1, "source": "user", "message": "Write <think>a</think>."}]
    assert without_reasoning(trajectory(steps=steps)).steps[0].message == "Write <think>a</think>."


def test_it_is_as_if_it_had_not_been_recorded():
    def episode(**thought):
        return trajectory(steps=[{"step_id": 1, "source": "agent", "message": "Done.", **thought}])

    assert content_hash(without_reasoning(episode(reasoning_content="SECRET"))) == content_hash(episode())


def test_subagents_are_stripped_too():
    inner = {"schema_version": "ATIF-v1.8", "steps": [{"step_id": 1, "source": "agent", "message": "m", "reasoning_content": "SECRET"}]}
    document = {"schema_version": "ATIF-v1.8", "steps": [], "subagent_trajectories": [{**inner, "subagent_trajectories": [inner]}, 7]}
    bare = without_reasoning(trajectory(trajectory=document))
    assert b"SECRET" not in b"".join(bytes(raw) for raw in bare.document.subagent_trajectories)


@pytest.mark.parametrize("name", odd_trajectories())
def test_no_record_is_too_odd(name):
    without_reasoning(odd_trajectories()[name])
