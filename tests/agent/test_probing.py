"""An agent tells of tasks without a reference that they can be solved, and never that they cannot."""

import json
import shlex

import pytest
from typer.testing import CliRunner

from inspector.agent.telling import with_rollouts
from inspector.cli.app import app
from inspector.probe import probe
from inspector.probe.words import Family, Outcome
from tests.agent.test_loop import DONE, HELLO


@pytest.fixture
def report(greeting):
    return probe(greeting)


def test_a_task_that_an_agent_solves_is_sound(greeting, report, model, agent):
    assert report.tasks[0].outcomes == (Outcome.NOT_ASSESSED,)
    model.answers = [HELLO, DONE, HELLO, DONE, DONE, DONE]
    [task] = with_rollouts(greeting, report, agent(), runs=4).tasks
    assert task.outcomes == (Outcome.SOUND,)
    assert [run.paid for run in task.runs if run.family is Family.ROLLOUT] == [True, True, False, False]
    assert task.probabilities["solved"] == 0.5
    assert any(note.startswith("pass@1 0.50 [") for note in task.notes)


def test_that_nobody_solved_it_is_no_accusation(greeting, report, model, agent):
    model.answers = [DONE]
    [task] = with_rollouts(greeting, report, agent(), runs=3).tasks
    assert task.outcomes == (Outcome.NOT_ASSESSED,)
    assert any("a rate of 0.63 or more would have shown itself" in note for note in task.notes)


def test_an_endpoint_that_fails_is_told_and_changes_nothing(greeting, report, model, agent):
    model.answers = [(401, b"no such key")]
    [task] = with_rollouts(greeting, report, agent(), runs=8).tasks
    assert task.outcomes == (Outcome.NOT_ASSESSED,)
    assert any("3 of 3 episodes say nothing: the endpoint answered 401" in note for note in task.notes)


def test_the_command_line_takes_an_agent(greeting, model, tmp_path, monkeypatch):
    monkeypatch.setenv("INSPECTOR_AGENT_KEY", "k2")
    model.answers = [HELLO, DONE]
    words = ["probe", str(tmp_path / "greeting"), "--json", "--agent", model.url, "--agent-model", "tiny", "--agent-runs", "1"]
    done = CliRunner().invoke(app, [*words, "--agent-trajectories", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout.splitlines()[0])["outcomes"] == ["sound"]
    assert model.key == "Bearer k2"
    assert len(list((tmp_path / "out").iterdir())) == 1
    model.answers = [HELLO, DONE]
    again = CliRunner().invoke(app, [*shlex.split(json.loads(done.stdout.splitlines()[0])["reproduce"])[1:], "--json"])
    assert json.loads(again.stdout.splitlines()[0])["outcomes"] == ["sound"]


def test_an_endpoint_that_answers_nobody_is_asked_for_two_tasks_and_no_more(model, tmp_path):
    model.answers = [(401, b"no such key")]
    rows = [{"task_id": name, "prompt": "Write f(x).", "tests": ["assert True"]} for name in "abc"]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = CliRunner().invoke(app, ["probe", str(tmp_path / "rows.jsonl"), "--json", "--agent", model.url, "--agent-model", "tiny"])
    told = "The agent was given up: the endpoint answered 401: no such key. It came to 2 of the 3 tasks without a reference."
    assert done.exit_code == 0
    assert told in done.stderr
    assert told in json.loads(done.stdout.splitlines()[-1])["notes"]


@pytest.mark.parametrize("words", [["--agent", "ftp://x", "--agent-model", "m"], ["--agent", "http://127.0.0.1:9"]])
def test_wrong_usage_is_told_before_anything_is_run(greeting, tmp_path, words):
    done = CliRunner().invoke(app, ["probe", str(tmp_path / "greeting"), *words])
    assert done.exit_code == 2
