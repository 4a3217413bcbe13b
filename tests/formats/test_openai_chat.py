"""Chat messages become steps; what ATIF has no place for stays under extra and is listed."""

import pytest

CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b": 2}'}}
ROW = {
    "id": "chat-1",
    "model": "m-8b",
    "reward": -100,
    "task_id": "sum",
    "tools": [{"type": "function", "function": {"name": "add"}}],
    "messages": [
        {"role": "developer", "content": "Add."},
        {"role": "user", "content": [{"type": "text", "text": "2+2?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]},
        {"role": "assistant", "content": None, "reasoning_content": "easy", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "4"},
        {"role": "assistant", "content": "4", "refusal": None, "annotations": [{"url": "x"}]},
    ],
    "dataset": "sums",
}


def test_messages_become_steps_and_tool_output_goes_to_its_caller(envelopes):
    (envelope,) = envelopes([ROW])
    system, user, call, answer = envelope["trajectory"]["steps"]
    assert (system["source"], system["extra"]) == ("system", {"role": "developer"})
    assert user["message"][1] == {"type": "image", "source": {"media_type": "image/png", "path": "data:image/png;base64,AA=="}}
    assert (call["message"], call["reasoning_content"]) == ("", "easy")
    assert call["tool_calls"] == [{"tool_call_id": "c1", "function_name": "add", "arguments": {"a": 2, "b": 2}}]
    assert call["observation"] == {"results": [{"source_call_id": "c1", "content": "4"}]}
    assert answer["extra"] == {"annotations": [{"url": "x"}]}
    assert envelope["reward"] == -100.0
    assert envelope["task"] == {"id": "sum"}
    assert envelope["trajectory"]["agent"]["tool_definitions"] == ROW["tools"]
    assert envelope["extra"]["openai_chat"] == {"dataset": "sums"}
    assert envelope["extra"]["import"]["lost"] == ["$.messages[4]: annotations kept under extra"]


@pytest.mark.parametrize(("arguments", "read"), [("", {}), (None, {}), ({"a": 1}, {"a": 1})])
def test_arguments_may_be_absent_or_an_object(envelopes, arguments, read):
    assert _call(envelopes, arguments) == {"tool_call_id": "c1", "function_name": "add", "arguments": read}


@pytest.mark.parametrize("arguments", ['{"a": 2', "[1]", "2", '{"a": NaN}'])
def test_arguments_that_are_no_object_stay_as_raw_text(envelopes, arguments):
    call = _call(envelopes, arguments)
    assert call["arguments"] == {}
    assert call["extra"] == {"raw_arguments": arguments}


def _call(envelopes, arguments):
    messages = [{"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "add", "arguments": arguments}}]}]
    return envelopes([{"messages": messages}])[0]["trajectory"]["steps"][0]["tool_calls"][0]


@pytest.mark.parametrize(
    ("given", "reward", "listed"),
    [
        ({}, None, False),
        ({"reward": None, "score": 1.0}, None, False),
        ({"score": 0.25}, 0.25, False),
        ({"reward": 19.4}, 19.4, False),
        ({"reward": 0}, 0.0, False),
        ({"reward": True}, 1.0, True),
        ({"reward": "1.0"}, None, True),
        ({"reward": [0, 1]}, None, True),
        ({"reward": 10**400}, None, True),
    ],
)
def test_rewards_are_the_sources_own(envelopes, given, reward, listed):
    (envelope,) = envelopes([{"messages": [{"role": "user", "content": "x"}], **given}])
    assert envelope["reward"] == reward
    assert (envelope["reward"] is None) == (reward is None)
    assert bool(envelope["extra"]["import"]["lost"]) == listed


def test_an_answer_to_no_call_is_kept_and_listed(envelopes):
    (envelope,) = envelopes([{"messages": [{"role": "assistant", "content": "hm"}, {"role": "tool", "tool_call_id": "zz", "content": "4"}]}])
    (step,) = envelope["trajectory"]["steps"]
    assert step["observation"] == {"results": [{"content": "4", "extra": {"source_call_id": "zz"}}]}
    assert "answers no call" in envelope["extra"]["import"]["lost"][0]


def test_a_call_id_used_again_answers_the_call_that_waits(envelopes):
    turn = [{"role": "assistant", "tool_calls": [CALL, CALL]}, *({"role": "tool", "tool_call_id": "c1", "content": str(at)} for at in range(2))]
    (envelope,) = envelopes([{"messages": turn + turn}])
    for step in envelope["trajectory"]["steps"]:
        assert [call["tool_call_id"] for call in step["tool_calls"]] == ["c1", "c1#2"]
        assert [(seen["source_call_id"], seen["content"]) for seen in step["observation"]["results"]] == [("c1", "0"), ("c1#2", "1")]


def test_reasoning_of_others_than_the_agent_is_moved(envelopes):
    (envelope,) = envelopes([{"messages": [{"role": "user", "content": "x", "reasoning": "why"}, {"role": "narrator", "content": "y"}]}])
    assert envelope["trajectory"]["steps"][0]["extra"] == {"reasoning": "why"}
    assert len(envelope["extra"]["import"]["lost"]) == 2


def test_prompt_and_completion_tell_context_from_what_the_policy_made(envelopes):
    prompt = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}, {"role": "user", "content": "2+2?"}]
    (listed, plain) = envelopes([{"prompt": prompt, "completion": [{"role": "assistant", "content": "4"}]}, {"prompt": "2+2?", "completion": "4"}])
    assert [step.get("is_copied_context") for step in listed["trajectory"]["steps"]] == [None, True, None, None]
    assert [step["source"] for step in plain["trajectory"]["steps"]] == ["user", "agent"]


def test_blocks_of_anthropics_shape_are_read(envelopes):
    messages = [
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "so"}, {"type": "text", "text": "ok"}, {"type": "tool_use", "id": "t", "name": "ls", "input": {}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "a b"}]}]},
    ]
    (step,) = envelopes([{"messages": messages}])[0]["trajectory"]["steps"]
    assert (step["message"], step["reasoning_content"]) == ("ok", "so")
    assert step["observation"]["results"] == [{"source_call_id": "t", "content": "a b"}]


def test_fields_of_the_envelope_are_taken_where_they_fit(envelopes):
    more = {
        "group": {"id": "g", "index": 0, "size": 2},
        "rewards": {"tests": 1, "style": None},
        "verifier": {"exit_code": 0},
        "seed": "seven",
        "finish_reason": "length",
    }
    (envelope,) = envelopes([{**ROW, **more}])
    assert envelope["group"] == more["group"]
    assert envelope["rewards"] == {"tests": {"score": 1.0}, "style": None}
    assert envelope["verifier"] == {"exit_code": 0}
    assert envelope["termination"] == {"reason": "max_tokens", "truncated": True}
    assert envelope["extra"]["openai_chat"]["unreadable"] == {"seed": "seven"}
