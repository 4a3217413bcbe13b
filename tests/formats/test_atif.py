"""ATIF documents of any version, and the folders of Harbor trials."""

import copy
import json

import atif
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector import formats
from inspector.errors import UnreadableInput
from inspector.formats._atif import tidied

from .conftest import checked, written

STEPS = [
    {"step_id": 1, "source": "user", "message": "ls?"},
    {
        "step_id": 2,
        "source": "agent",
        "message": "",
        "reasoning_content": "look",
        "tool_calls": [{"tool_call_id": "c1", "function_name": "bash", "arguments": {"cmd": "ls"}}],
        "observation": {"results": [{"source_call_id": "c1", "content": "a.txt"}]},
        "metrics": {"prompt_tokens": 5, "logprobs": [-0.5]},
    },
]
DOCUMENT = {"schema_version": "ATIF-v1.6", "session_id": "s", "agent": {"name": "terminus", "version": "2"}, "steps": STEPS}
OUTCOME = {
    "id": "b0aa2e91-0000-4c1b-9b0a-53d44fbb6635",
    "task_name": "list-files",
    "trial_name": "list-files__abc",
    "task_id": {"path": "tasks/basic/list-files"},
    "source": "acme/basic@2.1",
    "task_checksum": "00ff",
    "agent_info": {"name": "terminus", "version": "2", "model_info": {"name": "m"}},
    "verifier_result": {"rewards": {"reward": 0.5, "style": 1}},
    "exception_info": None,
    "started_at": "2026-11-26T08:00:00",
    "finished_at": "2026-11-26T08:09:00Z",
    "verifier": {"started_at": "2026-11-26T08:08:00Z", "finished_at": "2026-11-26T08:08:30.5Z"},
}


def test_a_good_document_is_not_changed(envelopes):
    (envelope,) = envelopes(DOCUMENT, "trajectory.json", environment="acme/basic", version="2")
    assert envelope["trajectory"] == DOCUMENT
    assert (envelope["reward"], envelope["environment"]) == (None, {"id": "acme/basic", "version": "2"})
    assert envelope["extra"]["import"]["lost"] == []


def test_documents_as_lines_are_read_too(envelopes):
    first, second = envelopes([{**DOCUMENT, "trajectory_id": "t1", "extra": {"reward": 1.0, "task_id": "x"}}, DOCUMENT])
    assert (first["id"], first["reward"], first["task"]) == ("t1", 1.0, {"id": "x"})
    assert second["task"]["id"].startswith("prompt-")


@pytest.mark.parametrize(
    ("break_", "path"),
    [
        (lambda d: d["steps"][0].update(reasoning_content="hm"), "$.trajectory.steps[0].reasoning_content"),
        (lambda d: d["steps"][0].update(metrics={"prompt_tokens": 1}, model_name="m"), "$.trajectory.steps[0].model_name"),
        (lambda d: d["steps"][1].update(step_id=7), "$.trajectory.steps[1].step_id"),
        (lambda d: d["steps"][1].update(llm_call_count=0), "$.trajectory.steps[1].metrics"),
        (lambda d: d["steps"][1].update(timestamp="yesterday"), "$.trajectory.steps[1].timestamp"),
        (lambda d: d["steps"][1].update(color="red"), "$.trajectory.steps[1].color"),
        (lambda d: d["steps"][1].update(source="robot"), "$.trajectory.steps[1].source"),
        (lambda d: d["steps"][1].update(message={"a": 1}), "$.trajectory.steps[1].message"),
        (lambda d: d["steps"][1].update(metrics={"logprobs": ["x"], "speed": 3}), "$.trajectory.steps[1].metrics.speed"),
        (lambda d: d["steps"][1]["tool_calls"][0].update(arguments="ls"), "$.trajectory.steps[1].tool_calls[0].arguments"),
        (lambda d: d["steps"][1]["observation"]["results"][0].update(source_call_id="zz"), "$.trajectory.steps[1].observation.results[0].source_call_id"),
        (
            lambda d: d["steps"][1]["observation"]["results"][0].update(subagent_trajectory_ref={"session_id": "s"}),
            "$.trajectory.steps[1].observation.results[0].sub",
        ),
        (lambda d: d["steps"].append("x"), "$.trajectory.steps"),
        (lambda d: d["agent"].pop("version"), "$.trajectory.agent.version"),
        (lambda d: d.pop("agent"), "$.trajectory.agent.name"),
        (lambda d: d.update(final_metrics={"total_steps": "two"}), "$.trajectory.final_metrics.total_steps"),
        (lambda d: d.update(subagent_trajectories=[copy.deepcopy(DOCUMENT), 3]), "$.trajectory.subagent_trajectories[0].trajectory_id"),
    ],
)
def test_what_atif_forbids_moves_to_extra_and_is_listed(envelopes, break_, path):
    broken = copy.deepcopy(DOCUMENT)
    break_(broken)
    (envelope,) = envelopes(broken)
    assert any(entry.startswith(path) for entry in envelope["extra"]["import"]["lost"])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = [
    "message",
    "source",
    "step_id",
    "timestamp",
    "model_name",
    "reasoning_effort",
    "reasoning_content",
    "tool_calls",
    "observation",
    "metrics",
    "extra",
    "llm_call_count",
]
FIELDS += [
    "is_copied_context",
    "results",
    "content",
    "source_call_id",
    "tool_call_id",
    "function_name",
    "arguments",
    "type",
    "text",
    "path",
    "media_type",
    "trajectory_id",
]


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), JSON | st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=4), max_size=6))
def test_whatever_a_document_holds_the_tidied_one_is_valid_and_stays_so(odd):
    call, seen = {"tool_call_id": "c", "function_name": "f", "arguments": {}, **odd}, {"content": [odd], **odd}
    document = {
        **odd,
        "steps": [odd, {"source": "agent", "tool_calls": [call, odd], "observation": {"results": [seen, odd]}, **odd}],
        "agent": odd,
        "subagent_trajectories": [odd, {"steps": [odd]}],
    }
    tidy, _ = tidied(document)
    atif.Trajectory.model_validate(tidy)
    assert tidied(tidy) == (tidy, [])


@pytest.fixture
def trial(tmp_path):
    """Writes a trial folder; a part of None is left out."""

    def write(outcome=OUTCOME, document=DOCUMENT, name="job/list-files__abc", **files):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        for file, part in {"result.json": outcome, "agent/trajectory.json": document}.items():
            if part is not None:
                written(folder / file, part)
        for file, text in files.items():
            written(folder / file, text)
        return folder

    return write


def one(path):
    (found,) = formats.read(path)
    return checked(found)


def test_a_trial_folder_gives_what_the_agent_did_and_what_the_verifier_said(trial):
    counts = {"results": {"summary": {"tests": 3, "passed": 2, "failed": 1, "skipped": 0, "pending": 0, "other": 0}}}
    envelope = one(trial(**{"verifier/test-stdout.txt": "2 passed\x1b[0m", "verifier/ctrf.json": counts}))
    assert envelope["id"] == "list-files__abc"
    assert envelope["environment"] == {"id": "acme/basic", "version": "2.1"}
    assert envelope["task"] == {"id": "list-files", "hash": "00ff"}
    assert (envelope["reward"], envelope["rewards"]) == (0.5, {"style": {"score": 1.0}})
    assert envelope["verifier"] == {"stdout": "2 passed\x1b[0m", "tests": {"collected": 3, "passed": 2, "failed": 1, "skipped": 0}, "duration_s": 30.5}
    assert envelope["started_at"] == "2026-11-26T08:00:00Z"
    assert any(entry.startswith("$.started_at: has no time zone") for entry in envelope["extra"]["import"]["lost"])
    assert envelope["trajectory"]["steps"] == STEPS


def test_a_job_folder_gives_its_trials(trial, tmp_path):
    trial()
    trial({**OUTCOME, "trial_name": "other__xyz"}, name="job/other__xyz")
    written(tmp_path / "job" / "result.json", {"n_total_trials": 2, "stats": {}})
    assert formats.detect(tmp_path / "job") == "atif"
    assert [checked(found)["id"] for found in formats.read(tmp_path / "job")] == ["list-files__abc", "other__xyz"]


def test_the_result_file_stands_for_its_folder(trial):
    assert one(trial() / "result.json")["trajectory"]["steps"] == STEPS


@pytest.mark.parametrize(
    ("rewards", "reward"),
    [({"reward": None}, None), ({"tests": 1}, 1.0), ({"a": 1, "b": 0}, None), ({"reward": True}, 1.0), (0.25, 0.25), ({}, None)],
)
def test_the_total_is_the_reward_that_is_called_so(trial, rewards, reward):
    assert one(trial({**OUTCOME, "verifier_result": {"rewards": rewards}}))["reward"] == reward


@pytest.mark.parametrize(
    ("file", "text", "reward"), [("reward.txt", "0.75\n", 0.75), ("reward.json", '{"reward": 1}', 1.0), ("reward.txt", "nan", None), ("reward.txt", "", None)]
)
def test_a_reward_that_only_lies_in_its_file_is_found(trial, file, text, reward):
    assert one(trial({**OUTCOME, "verifier_result": None}, **{f"verifier/{file}": text}))["reward"] == reward


def test_the_verifiers_null_is_not_replaced_by_a_file(trial):
    envelope = one(trial({**OUTCOME, "verifier_result": {"reward": None}}, **{"verifier/reward.txt": "1"}))
    assert envelope["reward"] is None


@pytest.mark.parametrize(
    ("kind", "boundary", "reason"),
    [
        ("AgentTimeoutError", "harness", "timeout"),
        ("VerifierTimeoutError", "verifier", "error"),
        ("EnvironmentStartTimeoutError", "sandbox", "timeout"),
        ("RewardFileNotFoundError", "verifier", "error"),
        ("ValueError", None, "error"),
    ],
)
def test_an_exception_is_typed_by_where_it_arose(trial, kind, boundary, reason):
    envelope = one(trial({**OUTCOME, "verifier_result": None, "exception_info": {"exception_type": kind, "exception_message": "boo"}}))
    assert envelope["errors"] == [{"type": kind, "boundary": boundary, "message": "boo"}]
    assert envelope["termination"]["reason"] == reason
    assert envelope["reward"] is None
    assert envelope["verifier"].get("timed_out", False) == (kind == "VerifierTimeoutError")


def test_a_trial_whose_agent_wrote_nothing_is_still_a_trajectory(trial):
    envelope = one(trial(document=None))
    assert envelope["trajectory"]["steps"] == []
    assert envelope["trajectory"]["agent"] == {"name": "terminus", "version": "2", "model_name": "m"}
    assert "steps of the agent are unknown" in envelope["extra"]["import"]["lost"][0]


def test_a_trial_without_its_outcome_or_with_a_broken_one_is_read_as_far_as_it_goes(trial):
    assert one(trial(outcome=None))["reward"] is None
    folder = trial(name="job/broken")
    (folder / "result.json").write_text("{cut")
    assert "result.json" in one(folder)["extra"]["import"]["lost"][0]


def test_of_a_long_log_the_end_is_kept(trial):
    envelope = one(trial(**{"verifier/test-stdout.txt": "x" * 600_000 + "END"}))
    assert len(envelope["verifier"]["stdout"]) == 512 << 10
    assert envelope["verifier"]["stdout"].endswith("END")
    assert any("left out" in entry for entry in envelope["extra"]["import"]["lost"])


def test_other_environments_follow_from_where_the_task_lies(trial):
    def environment(name, **outcome):
        return one(trial({**OUTCOME, "source": None, **outcome}, name=name))["environment"]

    assert environment("a") == {"id": "harbor/basic", "version": "0"}
    assert environment("b", task_id={"git_url": "u", "git_commit_id": "c0ffee", "path": "tb/x"}) == {"id": "harbor/tb", "version": "c0ffee"}
    assert environment("c", task_id={"org": "acme", "name": "tb", "ref": "3"}) == {"id": "acme/tb", "version": "3"}


def test_an_empty_folder_says_what_it_lacks(tmp_path):
    with pytest.raises(UnreadableInput, match="holds no Harbor trial"):
        list(formats.read(tmp_path, "atif"))


def test_links_out_of_a_job_are_not_followed(trial, tmp_path):
    trial(name="elsewhere/t")
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnreadableInput):
        list(formats.read(tmp_path / "job", "atif"))


def test_a_trial_posted_twice_has_the_same_line(trial):
    folder = trial()
    assert [found.line for found in formats.read(folder)] == [found.line for found in formats.read(folder)]
    assert json.loads(next(formats.read(folder)).line)["extra"]["import"]["format"] == "atif"
