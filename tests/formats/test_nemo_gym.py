"""Responses conversations of NeMo Gym, with the reward and whatever the verifier returned."""

import gzip
import json

import pytest

from inspector import formats

from .conftest import checked

REQUEST = {
    "input": [{"role": "developer", "content": "Use tools."}, {"role": "user", "content": "Weather?"}],
    "tools": [{"type": "function", "name": "look"}],
    "temperature": 1.0,
}
OUTPUT = [
    {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "I should look."}], "encrypted_content": None},
    {"type": "function_call", "id": "fc", "call_id": "c1", "name": "look", "arguments": '{"at": "sky"}', "status": "completed"},
    {"type": "function_call", "id": "fd", "call_id": "c2", "name": "look", "arguments": "not json", "status": "incomplete"},
    {"type": "function_call_output", "call_id": "c2", "output": "?"},
    {"type": "function_call_output", "call_id": "c1", "output": "blue"},
    {"type": "reasoning", "id": "rt", "summary": [{"type": "summary_text", "text": "Fine."}], "encrypted_content": "zzz"},
    {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Fine.", "annotations": [], "logprobs": None}],
    },
    {"type": "message", "role": "user", "content": "Sure?"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]},
    {"type": "web_search_call", "query": "x"},
]


def row(**more):
    response = {
        "id": "resp_1",
        "model": "m-4b",
        "output": OUTPUT,
        "usage": {"input_tokens": 7, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 2}},
    }
    return {"responses_create_params": REQUEST, "response": response, "reward": 19.4, "terminated": True, "truncated": False, **more}


def test_items_become_turns(envelopes):
    (envelope,) = envelopes([row()])
    system, user, looked, said, asked, sure = envelope["trajectory"]["steps"]
    assert [step["source"] for step in (system, user, asked)] == ["system", "user", "user"]
    assert looked["reasoning_content"] == "I should look."
    assert [(call["tool_call_id"], call["arguments"]) for call in looked["tool_calls"]] == [("c1", {"at": "sky"}), ("c2", {})]
    assert looked["tool_calls"][1]["extra"] == {"raw_arguments": "not json", "item_id": "fd", "status": "incomplete"}
    assert [seen["source_call_id"] for seen in looked["observation"]["results"]] == ["c2", "c1"]
    assert (said["message"], said["reasoning_content"]) == ("Fine.", "Fine.")
    assert said["extra"]["encrypted_content"] == "zzz"
    assert sure["extra"]["unknown_item_9"] == {"type": "web_search_call", "query": "x"}
    assert envelope["trajectory"]["final_metrics"] == {"total_prompt_tokens": 7, "total_completion_tokens": 3, "total_cached_tokens": 2}
    assert envelope["extra"]["import"]["lost"] == [
        "$.response.output[5]: encrypted content kept under extra",
        "$.response.output[9]: unknown item 9 kept under extra",
    ]


def test_what_the_verifier_returned_is_kept(envelopes):
    (envelope,) = envelopes([row(expected_answer="blue", reward_components={"right": 1.0, "short": None}, agent_ref={"name": "sky_agent"})])
    assert envelope["environment"] == {"id": "nemo_gym/sky_agent", "version": "0"}
    assert envelope["rewards"] == {"right": {"score": 1.0}, "short": None}
    assert envelope["extra"]["nemo_gym"]["expected_answer"] == "blue"
    assert envelope["extra"]["nemo_gym"]["request"] == {"temperature": 1.0}
    assert envelope["termination"] == {"reason": "completed", "truncated": False}


@pytest.mark.parametrize("reward", [None, -100.0, 19.4, 0.0, -2.0000000000000004])
def test_rewards_of_any_scale_are_kept_as_they_are(envelopes, reward):
    assert envelopes([row(reward=reward)])[0]["reward"] == reward


def test_a_failure_without_a_response_has_no_reward_and_a_typed_error(envelopes):
    (envelope,) = envelopes([{"responses_create_params": REQUEST, "_ng_failure_class": "SessionResetError", "_ng_failure_terminal": True, "_ng_task_index": 3}])
    assert envelope["reward"] is None
    assert envelope["errors"][0]["type"] == "SessionResetError"
    assert envelope["task"] == {"id": "3"}
    assert envelope["extra"]["nemo_gym"]["_ng_failure_terminal"] is True


def test_rollouts_of_one_task_are_a_group_and_a_single_one_is_none(envelopes):
    rows = [row(_ng_task_index=task, _ng_rollout_index=rollout) for task, rollout in ((0, 0), (0, 1), (1, 0))]
    first, second, third = envelopes(rows)
    assert first["group"] == {**second["group"], "index": 0}
    assert (second["group"]["index"], second["group"]["size"]) == (1, 2)
    assert "group" not in third


def test_a_response_id_names_the_rollout_unless_others_have_it_too(envelopes):
    assert envelopes([row()])[0]["id"] == "resp_1"
    assert len({envelope["id"] for envelope in envelopes([row(), row(), row()])}) == 3


def test_the_environment_follows_from_the_callers_word_and_then_from_the_place(envelopes):
    assert envelopes([row()], "sky/data/example_rollouts.jsonl")[0]["environment"]["id"] == "nemo_gym/sky"
    assert envelopes([row()], "sky.jsonl")[0]["environment"]["id"] == "nemo_gym/sky"
    assert envelopes([row()], environment="acme/sky", version="4")[0]["environment"] == {"id": "acme/sky", "version": "4"}


def test_history_in_the_request_is_context(envelopes):
    history = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    (envelope,) = envelopes([{**row(), "responses_create_params": {"input": history, "instructions": "Be brief."}}])
    assert [step.get("is_copied_context", False) for step in envelope["trajectory"]["steps"][:4]] == [False, False, True, False]


def test_every_published_rollout_is_read_with_its_own_reward(public_data):
    seen = []
    for path in sorted((public_data / "nemo_gym_rollouts").glob("*.jsonl.gz")):
        source = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines() if line.strip()]
        found = [checked(one) for one in formats.read(path)]
        assert formats.detect(path) == "nemo_gym"
        assert [envelope["reward"] for envelope in found] == [one.get("reward") for one in source]
        assert len({envelope["id"] for envelope in found}) == len(source)
        seen += [envelope["reward"] for envelope in found]
    assert len(seen) >= 130
    assert {-100.0, 19.4} <= set(seen)
