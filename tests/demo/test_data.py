"""The shape of the demo's data: enough of everything, every topic hit and narrowly missed. The verdicts are checked by the demo itself."""

import json
from collections import Counter
from importlib.resources import files

import msgspec
import pytest
import yaml

from inspector.task import NamedDeclaration, contradictions
from inspector.trajectory import Envelope

DEMO = files("inspector.demo")
FOLDER = DEMO / "trajectories"
EXPECTED = json.loads((DEMO / "expected.json").read_text())
VERDICTS = EXPECTED["trajectories"]
DECLARATIONS = msgspec.convert(yaml.safe_load((DEMO / "declarations.yaml").read_text()), list[NamedDeclaration])
TOPICS = {
    "reward_out_of_range": "record_defect",
    "components_do_not_sum": "record_defect",
    "group_with_several_tasks": "record_defect",
    "same_steps_other_reward": "record_defect",
    "tokens_do_not_match": "record_defect",
    "atif_rule_broken": "record_defect",
    "counts_contradict_themselves": "record_defect",
    "failure_scored_as_zero": "infrastructure",
    "verifier_crash_scored": "infrastructure",
    "limit_hidden": "infrastructure",
    "limit_passes_for_an_end": "infrastructure",
    "paid_despite_failures": "verifier_defect",
    "paid_despite_collection_error": "verifier_defect",
    "paid_without_tests": "verifier_defect",
    "zero_without_tests": "verifier_defect",
    "unpaid_despite_passing": "verifier_defect",
    "fewer_tests_than_reference": "verifier_defect",
    "tests_changed": "policy_exploit",
    "runner_reconfigured": "policy_exploit",
    "ends_the_test_run": "policy_exploit",
    "tests_skipped": "policy_exploit",
    "equals_everything": "policy_exploit",
    "grader_patched": "policy_exploit",
    "answer_from_history": "policy_exploit",
    "reward_written": "policy_exploit",
    "tool_shadowed": "policy_exploit",
    "tests_weakened": "policy_exploit",
    "no_tool_called": "infrastructure",
    "output_imagined": "anomaly",
    "same_action_for_ever": "anomaly",
    "unlike_its_environment": "anomaly",
    "paid_under_unlike_tasks": "policy_exploit",
}
PROVED = {"paid_under_unlike_tasks"}  # by a check whose precision is known
SUSPECTED = {topic for topic, cause in TOPICS.items() if cause == "policy_exploit"} - PROVED | {"no_tool_called"}  # by tier action: one alone flags
SUSPECTED |= {"unlike_its_environment"}  # an anomaly of a check that answers for its errors
TOLD = {"output_imagined", "same_action_for_ever"}  # anomalies: one alone is told, and moves no verdict
ONLY_FLAGGED = {"atif_rule_broken", "counts_contradict_themselves"}  # defects that leave reward, group and tokens as they are
DEFECTIVE = {id for id, expected in VERDICTS.items() if expected["checks"]}


def lines(name):
    return [line for line in (FOLDER / name).read_bytes().split(b"\n") if line]


def rows(*names):
    return [json.loads(line) for name in names for line in lines(name)]


NATIVE = [entry.name for entry in FOLDER.iterdir() if entry.name.endswith(".jsonl") and not entry.name.endswith((".chat.jsonl", "_rollouts.jsonl"))]
ENVELOPES = rows(*NATIVE)
CHAT = rows("orbit-tool-calls.chat.jsonl")
NEMO_GYM = rows("grid-world_rollouts.jsonl")
TRIALS = [json.loads((trial / "result.json").read_text()) for trial in (FOLDER / "harbor").iterdir()]
ATIF = json.loads((FOLDER / "claude-code.atif.json").read_text())


def step_fingerprint(envelope):
    def bare(step):
        calls = [(call["function_name"], call["arguments"]) for call in step.get("tool_calls") or []]
        seen = [part["content"] for part in (step.get("observation") or {}).get("results", [])]
        return [step["source"], step["message"], step.get("reasoning_content"), calls, seen]

    return json.dumps([bare(step) for step in envelope["trajectory"]["steps"]])


def test_every_trajectory_has_one_expected_verdict_and_none_is_left_over():
    ids = (
        [row["id"] for row in ENVELOPES + CHAT]
        + [row["response"]["id"] for row in NEMO_GYM]
        + [trial["trial_name"] for trial in TRIALS]
        + [ATIF["trajectory_id"]]
    )
    assert Counter(ids) == Counter(VERDICTS.keys())


def test_there_is_enough_of_everything():
    assert len(VERDICTS) >= 48
    assert len(DEFECTIVE) >= 24
    assert len(VERDICTS) - len(DEFECTIVE) >= 24
    assert len({envelope["environment"]["id"] for envelope in ENVELOPES}) >= 6
    assert min(map(len, (CHAT, NEMO_GYM, TRIALS))) >= 2
    lengths = {len(envelope["trajectory"]["steps"]) for envelope in ENVELOPES}
    assert min(lengths) <= 3
    assert max(lengths) >= 35


def test_defects_are_found_in_foreign_formats_too():
    assert len(DEFECTIVE - {envelope["id"] for envelope in ENVELOPES}) >= 2


@pytest.mark.parametrize("name", NATIVE)
def test_native_lines_are_envelopes(name):
    for line in lines(name):
        msgspec.json.decode(line, type=Envelope)


@pytest.mark.parametrize("topic", TOPICS)
def test_every_topic_is_hit_alone_twice_and_narrowly_missed(topic):
    assert sum(expected["checks"] == [topic] for expected in VERDICTS.values()) >= 2
    assert any(topic in expected.get("near_miss_of", ()) for expected in VERDICTS.values())


@pytest.mark.parametrize("id", VERDICTS)
def test_expected_verdicts_follow_the_default_policy(id):
    expected = VERDICTS[id]
    causes = {TOPICS[topic] for topic in expected["checks"]}
    assert not set(expected["checks"]) & set(expected.get("near_miss_of", ()))
    if set(expected["checks"]) <= TOLD:
        assert (expected["verdict"], expected["action"], expected["cause"]) == ("accept", "keep", None)
    elif set(expected["checks"]) <= ONLY_FLAGGED:
        assert (expected["verdict"], expected["action"], expected["cause"]) == ("flag", "keep", "record_defect")
    elif len(expected["checks"]) == 1 and set(expected["checks"]) <= SUSPECTED:
        assert (expected["verdict"], expected["action"], {expected["cause"]}) == ("flag", "keep", causes)
    else:
        action = "override_reward" if set(expected["checks"]) & PROVED else "exclude"
        assert (expected["verdict"], expected["action"], {expected["cause"]}) == ("quarantine", action, causes)


def test_declarations_hold_together_and_one_environment_is_undeclared():
    assert not [found for declaration in DECLARATIONS for found in contradictions(declaration)]
    posted = {(envelope["environment"]["id"], envelope["environment"]["version"]) for envelope in ENVELOPES}
    declared = {(declaration.id, declaration.version) for declaration in DECLARATIONS}
    assert declared < posted
    assert {environment for environment, _ in posted - declared} == {"kestrel/notebooks"}


def test_tasks_that_override_a_declaration_were_posted():
    posted = {(envelope["environment"]["id"], envelope["task"]["id"]) for envelope in ENVELOPES}
    assert {(declaration.id, task) for declaration in DECLARATIONS for task in declaration.tasks} <= posted


def test_steps_are_the_same_only_where_that_is_the_point():
    by_steps = {}
    for envelope in ENVELOPES:
        by_steps.setdefault(step_fingerprint(envelope), []).append(envelope["id"])
    repeated = [ids for ids in by_steps.values() if len(ids) > 1]
    assert all("same_steps_other_reward" in VERDICTS[id]["checks"] + VERDICTS[id].get("near_miss_of", []) for ids in repeated for id in ids)
    assert {id for ids in repeated for id in ids} >= {id for twins in EXPECTED["twins"] for id in twins["pair"] if id.startswith("orb9")}


def test_an_excluded_member_leaves_its_group_two_scored_rows_or_none():
    groups = {}
    for envelope in ENVELOPES:
        if group := envelope.get("group"):
            groups.setdefault((envelope["run"]["id"], group["id"]), []).append(envelope)
    mixed = {group["group"] for group in EXPECTED["mixed_groups"]}
    for (_, name), members in groups.items():
        left = [member["id"] for member in members if member["reward"] is not None and member["id"] not in DEFECTIVE]
        assert len(members) == members[0]["group"]["size"], name
        assert (not left) if name in mixed else len(left) >= 2, name


def test_hostile_text_is_among_it():
    text = "".join(map(json.dumps, ENVELOPES + CHAT))
    assert all(hostile in text for hostile in ("\\u001b[2J", "\\u202e", "<script>", "IGNORE ALL PREVIOUS"))
