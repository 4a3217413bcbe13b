"""SWE-agent `.traj` files, of older releases and of newer ones."""

import json

import pytest

from inspector import formats

from .conftest import checked

CALL = {"id": "call_1", "type": "function", "function": {"name": "create", "arguments": '{"filename": "a.py"}'}}
HISTORY = [
    {"role": "system", "content": "You fix bugs.", "agent": "main", "message_type": "system_prompt"},
    {"role": "user", "content": "A demonstration.", "agent": "main", "is_demo": True},
    {"role": "user", "content": "Fix it.", "agent": "main"},
    {"role": "assistant", "content": "I create.", "action": "create a.py", "agent": "main", "tool_calls": [CALL]},
    {"role": "tool", "content": "[File: a.py]", "agent": "main", "tool_call_ids": ["call_1"]},
    {"role": "assistant", "content": "Done.\n```\nsubmit\n```", "action": "submit", "agent": "main"},
]
ATTEMPT = {
    "environment": "lab",
    "trajectory": [
        {
            "action": "create a.py",
            "observation": "[File: a.py]",
            "response": "I create.",
            "thought": "I create.",
            "execution_time": 0.2,
            "state": {"open_file": "a.py"},
        },
        {"action": "submit", "observation": "ok", "response": "Done.\n```\nsubmit\n```", "thought": "Done.", "query": [{"role": "user", "content": "Fix it."}]},
    ],
    "history": HISTORY,
    "info": {"exit_status": "submitted", "submission": "diff", "model_stats": {"instance_cost": 0.5, "tokens_sent": 10, "tokens_received": 2, "api_calls": 2}},
    "replay_config": json.dumps({"problem_statement": {"id": "lab__repo-1"}, "agent": {"model": {"name": "m-70b"}}}),
}


def test_an_attempt_becomes_prompt_and_turns(envelopes):
    (envelope,) = envelopes(ATTEMPT, "x.traj")
    system, demo, task, create, submit = envelope["trajectory"]["steps"]
    assert [step["message"] for step in (system, task)] == ["You fix bugs.", "Fix it."]
    assert demo["is_copied_context"] is True
    assert create["tool_calls"] == [
        {"tool_call_id": "call_1", "function_name": "create", "arguments": {"filename": "a.py"}, "extra": {"action": "create a.py"}}
    ]
    assert create["observation"] == {"results": [{"source_call_id": "call_1", "content": "[File: a.py]"}]}
    assert create["extra"] == {"execution_time": 0.2, "state": {"open_file": "a.py"}}
    assert submit["tool_calls"][0]["arguments"] == {"command": "submit"}
    assert submit["extra"]["thought"] == "Done."
    assert envelope["environment"] == {"id": "swe_agent/lab", "version": "0"}
    assert envelope["task"] == {"id": "lab__repo-1"}
    assert envelope["reward"] is None
    assert envelope["termination"]["reason"] == "submitted"
    assert envelope["trajectory"]["agent"]["model_name"] == "m-70b"
    assert envelope["trajectory"]["final_metrics"] == {"total_prompt_tokens": 10, "total_completion_tokens": 2, "total_cost_usd": 0.5}
    assert envelope["extra"]["swe_agent"]["info"]["submission"] == "diff"
    assert envelope["extra"]["import"]["lost"] == ["$.trajectory[*].query: the prompt of each turn repeats the steps before it; not carried"]


@pytest.mark.parametrize(
    ("status", "reason", "truncated", "boundary"),
    [
        ("submitted (exit_context)", "max_tokens", True, None),
        ("exit_cost", "max_cost", True, None),
        ("exit_total_execution_time", "timeout", True, None),
        ("exit_api", "error", None, "provider"),
        ("exit_environment_error", "error", None, "sandbox"),
        ("something new", "something new", None, None),
    ],
)
def test_how_it_ended_is_told_apart(envelopes, status, reason, truncated, boundary):
    (envelope,) = envelopes({**ATTEMPT, "info": {"exit_status": status}})
    assert (envelope["termination"]["reason"], envelope["termination"]["truncated"]) == (reason, truncated)
    assert [error["boundary"] for error in envelope.get("errors", [])] == ([boundary] if boundary else [])


def test_a_resolved_mark_is_the_reward(envelopes):
    assert envelopes({**ATTEMPT, "info": {"resolved": False}})[0]["reward"] == 0.0


def test_without_actions_the_history_is_told(envelopes):
    (envelope,) = envelopes({**ATTEMPT, "trajectory": []})
    assert [step["source"] for step in envelope["trajectory"]["steps"]] == ["system", "user", "user", "agent", "agent"]
    assert envelope["trajectory"]["steps"][3]["observation"]["results"][0]["content"] == "[File: a.py]"


def test_without_its_settings_the_file_names_the_task(envelopes):
    (envelope,) = envelopes({**ATTEMPT, "replay_config": "{cut"}, "lab__repo-2.traj")
    assert envelope["task"] == {"id": "lab__repo-2"}
    assert any("replay_config" in entry for entry in envelope["extra"]["import"]["lost"])


def test_every_published_attempt_is_read(public_data):
    paths = sorted((public_data / "format_fixtures").glob("*.traj"))
    for path in paths:
        source = json.loads(path.read_text())
        (envelope,) = (checked(found) for found in formats.read(path))
        turns = [step for step in envelope["trajectory"]["steps"] if step["source"] == "agent"]
        assert formats.detect(path) == "swe_agent"
        assert envelope["reward"] is None
        assert len(turns) == len(source["trajectory"])
        assert [step["observation"]["results"][0]["content"] for step in turns] == [action["observation"] for action in source["trajectory"]]
    assert paths
