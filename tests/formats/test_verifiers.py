"""Rollouts of verifiers: results of version 0, traces of version 1."""

import json

import pytest

from inspector import formats

from .conftest import written

RESULT = {
    "example_id": 4,
    "prompt": [{"role": "user", "content": "2+2?"}],
    "completion": [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [json.dumps({"id": "c", "function": {"name": "calc", "arguments": '{"x": 1}'}, "type": "function"})],
        },
        {"role": "tool", "tool_call_id": "c", "content": "4"},
        {"role": "assistant", "content": "4"},
    ],
    "reward": 0.5,
    "answer": "4",
    "metrics": {"exact": 1.0},
    "stop_condition": "max_turns_reached",
    "is_truncated": False,
    "error": {"error": "SandboxError", "error_chain_str": "SandboxError: gone"},
    "token_usage": {"input_tokens": 9.0, "output_tokens": 2.0},
}
NODES = [
    {"parent": None, "message": {"role": "system", "content": "Add."}, "sampled": False, "token_ids": [1], "mask": [False], "logprobs": []},
    {"parent": 0, "message": {"role": "user", "content": "2+2?"}, "sampled": False},
    {
        "parent": 1,
        "message": {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [{"id": "c", "name": "calc", "arguments": "{}"}]},
        "sampled": True,
        "token_ids": [5, 6, 7],
        "mask": [False, True, True],
        "logprobs": [-0.1, -0.2],
    },
    {"parent": 2, "message": {"role": "tool", "tool_call_id": "c", "content": "4"}, "sampled": False},
    {"parent": 0, "message": {"role": "user", "content": "Summary so far"}, "sampled": False},
    {"parent": 4, "message": {"role": "assistant", "content": "made up"}, "sampled": False},
    {"parent": 5, "message": {"role": "assistant", "content": "4"}, "sampled": True},
]
TRACE = {
    "version": 1,
    "id": "t1",
    "task": {"type": "Sum", "data": {"a": 2}, "key": "two-two", "hash": "ab12"},
    "agent": {"name": "solver", "config": {"model": "m"}},
    "nodes": NODES,
    "calls": [{"usage": {"prompt_tokens": 3, "completion_tokens": 2}}, {"usage": None}],
    "rewards": {"right": {"score": 1.0, "weight": 0.5}, "style": {"score": 0.2, "weight": 1.0}},
    "metrics": {"turns": 2.0},
    "ok": True,
    "stop_condition": "agent_completed",
    "timing": {"start": 1764150000.0, "scoring": {"end": 1764150060.5}},
}
EPISODE = {
    "id": "e1",
    "env": {"id": "lab/sums", "name": "sums"},
    "group": {"id": "g1"},
    "run": {"type": "prime-rl", "id": "r1", "work": {"type": "train", "step": 12, "policy": {"start": 11, "end": 12}}},
    "is_timeout": False,
    "errors": [],
    "task": TRACE["task"],
    "traces": [TRACE],
}


def test_a_result_row_becomes_a_trajectory(envelopes):
    (envelope,) = envelopes([RESULT], environment="lab/sums", version="2")
    _, call, answer = envelope["trajectory"]["steps"]
    assert call["tool_calls"] == [{"tool_call_id": "c", "function_name": "calc", "arguments": {"x": 1}}]
    assert call["observation"]["results"][0]["content"] == "4"
    assert answer["message"] == "4"
    assert (envelope["reward"], envelope["task"], envelope["environment"]) == (0.5, {"id": "4"}, {"id": "lab/sums", "version": "2"})
    assert envelope["termination"] == {"reason": "max_steps", "truncated": False, "timed_out": None}
    assert envelope["errors"] == [{"type": "SandboxError", "boundary": "sandbox", "message": "SandboxError: gone"}]
    assert envelope["extra"]["verifiers"] == {"answer": "4", "metrics": {"exact": 1.0}}
    assert envelope["trajectory"]["final_metrics"] == {"total_prompt_tokens": 9, "total_completion_tokens": 2}


def test_the_metadata_beside_the_results_names_environment_model_and_group(envelopes, tmp_path):
    written(tmp_path / "run" / "metadata.json", {"env_id": "sums", "model": "m-8b", "rollouts_per_example": 2})
    first, second = envelopes([RESULT, {**RESULT, "reward": None}], "run/results.jsonl")
    assert first["environment"] == {"id": "verifiers/sums", "version": "0"}
    assert first["trajectory"]["agent"]["model_name"] == "m-8b"
    assert first["group"] == second["group"]
    assert first["group"]["size"] == 2
    assert second["reward"] is None


def test_a_trace_becomes_a_trajectory(envelopes):
    (envelope,) = envelopes([EPISODE])
    _system, _user, call, summary, made_up, answer = envelope["trajectory"]["steps"]
    assert (call["reasoning_content"], call["metrics"]) == ("hm", {"completion_token_ids": [6, 7], "logprobs": [-0.1, -0.2]})
    assert call["observation"]["results"] == [{"source_call_id": "c", "content": "4"}]
    assert summary["extra"] == {"parent_node": 0}
    assert made_up["is_copied_context"] is True
    assert "is_copied_context" not in answer
    assert envelope["id"] == "t1"
    assert envelope["reward"] == pytest.approx(0.7)
    assert envelope["rewards"]["right"] == {"score": 1.0, "weight": 0.5}
    assert envelope["environment"] == {"id": "lab/sums", "version": "0"}
    assert envelope["task"] == {"id": "two-two", "hash": "ab12"}
    assert envelope["group"] == {"id": "g1"}
    assert envelope["run"] == {"id": "r1", "trainer": "prime-rl", "work": "train", "step": 12, "policy_version": 11}
    assert envelope["ended_at"] == "2025-11-26T09:41:00.500000Z"
    assert envelope["extra"]["verifiers"]["metrics"] == {"turns": 2.0}
    assert [entry.split(":")[0] for entry in envelope["extra"]["import"]["lost"]] == ["$.nodes[*].token_ids", "$.nodes[4].parent"]


@pytest.mark.parametrize("rewards", [{"right": None}, {"right": {"score": 1.0}, "style": None}, {}, None])
def test_a_component_that_was_not_scored_leaves_the_total_open(envelopes, rewards):
    (envelope,) = envelopes([{**EPISODE, "traces": [{**TRACE, "rewards": rewards}]}])
    assert envelope["reward"] is None


def test_a_reward_of_zero_is_zero(envelopes):
    (envelope,) = envelopes([{**TRACE, "rewards": {"right": {"score": 0.0, "weight": 1.0}}}])
    assert envelope["reward"] == 0.0


def test_each_trace_of_an_episode_is_one_and_an_empty_episode_is_refused(write):
    two = {**EPISODE, "traces": [TRACE, {**TRACE, "id": "t2"}, {"id": "t3"}]}
    found = list(formats.read(write([two, {**EPISODE, "traces": []}])))
    assert [type(one).__name__ for one in found] == ["Imported", "Imported", "Refused", "Refused"]
    assert found[1].source.endswith(":1[1]")


def test_errors_of_a_trace_are_typed_by_their_boundary(envelopes):
    errors = [{"type": "ProviderError", "message": "503"}, {"type": "ToolsetError", "message": "x"}, {"type": "KeyError", "message": "k"}]
    (envelope,) = envelopes([{**EPISODE, "is_timeout": True, "traces": [{**TRACE, "errors": errors}]}])
    assert [error["boundary"] for error in envelope["errors"]] == ["provider", "tool", None]
    assert envelope["termination"]["timed_out"] is True


def test_a_trace_on_its_own_is_read(write):
    path = write([TRACE])
    assert formats.detect(path) == "verifiers"
    assert formats.detect(write([RESULT], "b")) == "verifiers"
