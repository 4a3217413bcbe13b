"""The agent works in a real box: what it does is written down, what goes wrong is told to it, and it ends."""

import json

import pytest

from inspector import gates
from inspector.agent import Ending, roll_out
from inspector.probe.sequential import Standing

HELLO = "I write it.\n```bash\necho hello > greeting.txt\n```"
DONE = "TASK_COMPLETE"


def only(environment):
    [task] = environment.tasks()
    return task


def attempt(environment, agent, **options):
    [one] = roll_out(environment, only(environment), agent, runs=1, **options).attempts
    return one


def test_work_that_is_right_is_paid_by_what_it_left(greeting, model, agent):
    model.answers = [HELLO, DONE]
    one = attempt(greeting, agent())
    assert (one.episode.ending, one.grade.reward, one.passed) == (Ending.SUBMITTED, 1.0, True)


def test_saying_that_it_is_done_pays_nothing(greeting, model, agent):
    model.answers = [f"I wrote hello into the file.\n{DONE}"]
    one = attempt(greeting, agent())
    assert (one.episode.ending, one.grade.reward, one.passed) == (Ending.SUBMITTED, 0.0, False)


def test_each_attempt_begins_anew(greeting, model, agent):
    model.answers = [HELLO, DONE, DONE]
    rollouts = roll_out(greeting, only(greeting), agent(), runs=2)
    assert [one.passed for one in rollouts.attempts] == [True, False]
    assert (rollouts.passed, rollouts.runs) == (1, 2)
    assert rollouts.pass_at(1).mean == 0.5
    assert rollouts.pass_at(3) is None


def test_what_goes_wrong_is_told_to_the_model(greeting, model, agent):
    model.answers = ["```bash\nfalse && ls /nowhere\n```", "```bash\nsleep 60\n```", "no command here", "```bash\nseq 1 100000\n```", DONE]
    attempt(greeting, agent(action_s=1))
    told = [asked["messages"][-1]["content"] for asked in model.asked]
    assert told[0].startswith("Write hello")
    assert told[1].startswith("[exit code 1]")
    assert told[2].startswith("[ended after 1 s")
    assert "no command block" in told[3]
    assert "characters left out" in told[4]
    assert told[4].endswith("100000\n")


def test_processes_and_files_stay_and_variables_do_not(greeting, model, agent):
    model.answers = [
        "```bash\nexport A=1; sleep 30 & echo $! > pid\n```",
        "```bash\nkill -0 $(cat pid) && echo lives ${A:-unset} $(pwd)\n```",
        DONE,
    ]
    attempt(greeting, agent())
    assert model.asked[2]["messages"][-1]["content"] == "[exit code 0]\nlives unset /app\n"


@pytest.mark.parametrize(
    ("allowance", "ending"),
    [({"turns": 2}, Ending.TURNS), ({"tokens": 20}, Ending.TOKENS), ({"wall_s": 0.0}, Ending.TIME), ({"mute": 2, "turns": 9}, Ending.MUTE)],
)
def test_every_allowance_ends_it_and_what_was_left_is_graded(greeting, model, agent, allowance, ending):
    model.answers = ["hm"] if "mute" in allowance else ["```bash\necho hello > greeting.txt\n```"]
    one = attempt(greeting, agent(**allowance))
    assert one.episode.ending is ending
    assert one.grade.reward == (0.0 if ending in (Ending.MUTE, Ending.TIME) else 1.0)


def test_an_endpoint_that_fails_says_nothing_about_the_task(greeting, model, agent):
    model.answers = [HELLO, (500, b"")]
    rollouts = roll_out(greeting, only(greeting), agent(), runs=8)
    assert {one.episode.ending for one in rollouts.attempts} == {Ending.ENDPOINT}
    assert (rollouts.runs, rollouts.standing, len(rollouts.attempts)) == (0, Standing.OPEN, 3)


def test_a_task_that_cannot_be_built_says_nothing(tmp_path, greeting, model, agent, boxes):
    from inspector.environments.opening import open_environments

    folder = tmp_path / "greeting"
    (folder / "environment/Dockerfile").write_text("FROM node:22\nRUN npm install left-pad\n")
    [broken] = open_environments(str(folder), backend=boxes)
    model.answers = [HELLO]
    one = attempt(broken, agent())
    assert (one.episode.ending, one.grade) == (Ending.SANDBOX, None)
    assert not model.asked


def test_the_sequential_test_stops_early(greeting, model, agent):
    model.answers = [HELLO, DONE] * 10 + [DONE] * 60
    rollouts = roll_out(greeting, only(greeting), agent(), runs=64)
    assert rollouts.standing is Standing.USABLE
    assert len(rollouts.attempts) < 20


def test_the_episode_is_written_down_as_atif(greeting, model, agent, tmp_path):
    model.answers = [HELLO, f"Done 😀.\n{DONE}"]
    attempt(greeting, agent(), folder=tmp_path / "out")
    [path] = (tmp_path / "out").iterdir()
    written = json.loads(path.read_text())
    assert [step["source"] for step in written["steps"]] == ["system", "user", "agent", "agent"]
    assert written["steps"][2]["tool_calls"][0]["arguments"] == {"command": "echo hello > greeting.txt"}
    assert written["extra"]["reward"] == 1.0
    envelope = {"id": "e", "environment": {"id": "a/b", "version": "1"}, "task": {"id": "t"}, "reward": 1.0, "trajectory": written}
    found = gates.read(json.dumps(envelope).encode())
    assert (found.defects, found.unknown, len(found.steps)) == ((), (), 4)
