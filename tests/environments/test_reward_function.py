"""Reward functions in TRL's signature, run inside boxes."""

from __future__ import annotations

import pytest

from inspector.environments.protocol import Conditions, Text, Trouble, Unreadable

JUDGE = r"""
import os, re
import helper

def boxed(completions, answer, **columns):
    found = [re.search(r"\\boxed\{(.*?)\}", each) for each in completions]
    return [helper.pay(bool(match) and match[1] == wanted) for match, wanted in zip(found, answer)]

def spoken(prompts, completions, **columns):
    return [float(each[0]["content"] == "yes" and prompt[0]["role"] == "user") for prompt, each in zip(prompts, completions)]

async def later(completions, log_metric, trainer_state):
    log_metric("length", 1)
    return [float(len(each)) for each in completions]

def unsure(completions): return [None]
def short(completions): return []
def scalar(completions): return 1.0
def wrong(completions): return ["1"]
def endless(completions): return [float("inf")]
def raises(completions): raise ValueError("no answer")
def gone(completions): os._exit(0)
def loops(completions):
    while True: pass
def noisy(completions):
    print("seen")
    return [0.5]
def lasting(completions):
    fresh = not os.path.exists("/tmp/mark") and not helper.seen
    helper.seen.append(1)
    return [float(fresh)]
"""


@pytest.fixture
def judged(opened, rows, tmp_path, monkeypatch):
    """Opens one of the functions above on rows."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "judge.py").write_text(JUDGE)
    (tmp_path / "helper.py").write_text("seen = []\n\ndef pay(right): return 1.0 if right else 0.0\n")
    return lambda name, *values: opened(f"judge:{name}", rows(*(values or ({"prompt": "?"},))))


def test_a_label_becomes_a_reference_in_the_form_that_the_function_takes(judged):
    environment = judged("boxed", {"prompt": "1 + 1?", "answer": "2"}, {"prompt": "2 + 2?", "answer": 4})
    first, second = environment.tasks()
    assert (first.reference, second.reference) == (Text("\\boxed{2}"), Text("\\boxed{4}"))
    assert first.answers == ("\\boxed{2}", "2")
    assert [environment.grade(first, each).reward for each in (first.reference, Text("2"), Text(""))] == [1.0, 0.0, 0.0]


def test_a_function_that_gives_no_reward_is_told_with_its_own_words(judged):
    (task,) = judged("raises", {"prompt": "1 + 1?", "answer": "2"}).tasks()
    assert task.reference is None
    assert "gives no reward" in task.notes[0]
    assert task.notes[0].endswith("ValueError: no answer")


def test_a_whole_reference_is_taken_as_it_stands(judged):
    environment = judged("boxed", {"prompt": "1 + 1?", "answer": "2", "completion": [{"role": "assistant", "content": "It is \\boxed{2}."}]})
    (task,) = environment.tasks()
    assert environment.grade(task, task.reference).reward == 1.0


def test_messages_are_answered_by_messages(judged):
    environment = judged("spoken", {"prompt": [{"role": "user", "content": "Well?"}]})
    (task,) = environment.tasks()
    assert (task.prompt, environment.grade(task, Text("yes")).reward) == ("Well?", 1.0)


@pytest.mark.parametrize(
    ("name", "reward", "said"),
    [
        ("later", 3.0, ""),
        ("noisy", 0.5, "seen"),
        ("unsure", None, "the reward is None"),
        ("short", None, "0 rewards for one completion"),
        ("scalar", None, "returned float, not a list"),
        ("wrong", None, "no finite number"),
        ("endless", None, "no finite number"),
        ("raises", None, "ValueError: no answer"),
        ("gone", None, "ended without an answer"),
    ],
)
def test_what_a_function_returns_is_a_reward_or_a_trouble(judged, name, reward, said):
    environment = judged(name)
    grade = environment.grade(environment.tasks()[0], Text("abc"))
    assert (grade.reward, grade.trouble) == (reward, None if reward is not None else Trouble.MALFORMED)
    assert said in grade.evidence


def test_a_function_that_loops_is_stopped_and_the_next_one_is_asked_anew(judged):
    environment = judged("loops")
    (task,) = environment.tasks()
    for _ in range(2):
        assert environment.grade(task, Text(""), Conditions(timeout_s=0.5)).trouble is Trouble.TIMED_OUT


def test_a_grade_sees_nothing_of_the_one_before(judged):
    environment = judged("lasting")
    (task,) = environment.tasks()
    assert [environment.grade(task, Text("")).reward for _ in range(3)] == [1.0, 1.0, 1.0]


def test_other_conditions_are_given_a_box_of_their_own(judged):
    environment = judged("noisy")
    assert environment.grade(environment.tasks()[0], Text(""), Conditions(seed=3, timezone="Asia/Tokyo")).reward == 0.5


def test_what_cannot_be_loaded_is_unreadable_or_not_built(judged):
    with pytest.raises(Unreadable, match="no attribute"):
        judged("missing", {"prompt": "?", "answer": "1"}).tasks()
    environment = judged("missing")
    assert environment.grade(environment.tasks()[0], Text("")).trouble is Trouble.NOT_BUILT


@pytest.mark.parametrize("value", [{"question": 3}, {"text": "x"}, {"prompt": []}])
def test_a_row_without_a_prompt_is_named(judged, value):
    with pytest.raises(Unreadable, match=r"rows\.jsonl:1"):
        judged("noisy", value)


def test_a_digest_speaks_of_the_code_beside_it(judged, tmp_path):
    first = judged("noisy")
    (tmp_path / "helper.py").write_text("def pay(right): return 2.0\n")
    assert judged("noisy").verifier_digest != first.verifier_digest


ROBBED = """
import os, socket

TAKE = '''
import os, socket, time
if os.fork() == 0:
    os.setsid()
    os.unlink("/tmp/verifier")
    taken = socket.socket(socket.AF_UNIX)
    taken.bind("/tmp/verifier")
    taken.listen(8)
    while True:
        connection, _ = taken.accept()
        connection.recv(65536)
        connection.sendall(b'{"reward": 1.0}')
        connection.close()
'''

def ran(completions):
    for each in completions:
        exec(each, {})
    return [0.0]
"""


@pytest.mark.parametrize("left", ["a process", "open('/etc/ld.so.preload', 'w').close()"])
def test_what_a_submission_leaves_answers_for_no_other(opened, rows, tmp_path, monkeypatch, left):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robbed.py").write_text(ROBBED)
    environment = opened("robbed:ran", rows({"prompt": "?"}))
    (task,) = environment.tasks()
    namespace = {}
    exec(ROBBED, namespace)
    environment.grade(task, Text(namespace["TAKE"] if left == "a process" else left))
    grader = environment._grader
    assert grader._box is None  # ended, not used again
    assert [environment.grade(task, Text("")).reward for _ in range(2)] == [0.0, 0.0]


def test_a_clean_submission_leaves_the_box_to_the_next(judged):
    environment = judged("lasting")
    (task,) = environment.tasks()
    assert [environment.grade(task, Text("x")).reward for _ in range(3)] == [1.0, 1.0, 1.0]
    assert environment._grader._grades == 3


RESTLESS = """
import os, threading, time

def write():
    at = 0
    while True:
        open(f"/tmp/{(at := at + 1)}", "w").close()
        time.sleep(0.001)

def restless(completions):
    return [1.0]

if os.path.exists("/tmp/setup"):
    threading.Thread(target=write, daemon=True).start()
"""


def test_a_verifier_that_never_rests_is_graded_in_a_new_box_each_time(opened, rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("inspector.environments.graders.SETTLED_S", 0.3)
    (tmp_path / "moving.py").write_text(RESTLESS)
    environment = opened("moving:restless", rows({"prompt": "?"}))
    (task,) = environment.tasks()
    assert environment.grade(task, Text("x")).reward == 1.0
    assert environment._grader._box is None
