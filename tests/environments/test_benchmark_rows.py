"""Benchmark rows: three spellings of a row, and what a program is paid for."""

from __future__ import annotations

import dataclasses

import pytest

from inspector.environments import boxes
from inspector.environments.benchmark_rows import LIMITS, BenchmarkRows
from inspector.environments.protocol import Conditions, Kind, Script, Text, Trouble, Unreadable
from inspector.environments.rows import read_rows
from inspector.sandbox.protocol import Ended, Result

OWN = {
    "task_id": "double",
    "prompt": "Double a number.",
    "reference": "def double(x):\n    return 2 * x",
    "tests": ["assert double(2) == 4", "assert double(0) == 0"],
}
MBPP = {"task_id": 7, "text": "Double a number.", "code": OWN["reference"], "test_list": OWN["tests"], "test_setup_code": "", "challenge_test_list": []}
HUMANEVAL = {
    "task_id": "Eval/1",
    "prompt": 'def double(x):\n    """Twice x."""\n',
    "canonical_solution": "    return 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(0) == 0\n",
    "entry_point": "double",
}


@pytest.mark.parametrize("row", [OWN, MBPP, HUMANEVAL], ids=["own", "mbpp", "humaneval"])
def test_the_reference_is_paid_and_nothing_is_not(opened, rows, row):
    environment = opened(rows(row))
    (task,) = environment.tasks()
    assert (task.kind, task.entry_point) == (Kind.CODE, "double")
    assert environment.grade(task, task.reference).reward == 1.0
    assert environment.grade(task, Text("")).reward == 0.0


@pytest.fixture
def double(opened, rows):
    environment = opened(rows(OWN))
    (task,) = environment.tasks()
    return lambda text, **changes: environment.grade(dataclasses.replace(task, **changes), Text(text))


def test_a_completion_is_graded_behind_its_prompt(opened, rows):
    environment = opened(rows(HUMANEVAL))
    (task,) = environment.tasks()
    assert environment.grade(task, Text("    return x + x\n")).reward == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nsys.exit(0)",
        "import os\nos._exit(0)",
        "raise SystemExit",
        "import atexit, os\natexit.register(os._exit, 0)",
        "import os, sys\nsys.excepthook = lambda *_: os._exit(0)",
        "print('1' * 100)",
        "import os\nfor fd in range(3, 64):\n    try: os.write(fd, b'1' * 64)\n    except OSError: pass\nos._exit(0)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    ],
)
def test_an_end_before_the_tests_end_is_never_paid(double, text):
    grade = double(text)
    assert (grade.reward, grade.trouble) == (0.0, None)


def test_an_object_that_equals_everything_is_paid_as_by_every_verifier_of_this_kind(double):
    assert double("class E:\n    def __eq__(self, other): return True\n\ndef double(x): return E()").reward == 1.0


def test_a_failed_assertion_is_shown(double):
    grade = double("def double(x): return 3")
    assert grade.reward == 0.0
    assert "assert double(2) == 4" in grade.evidence


def test_a_loop_is_a_timeout_and_no_reward_of_zero(opened, rows):
    environment = opened(rows(OWN))
    (task,) = environment.tasks()
    grade = environment.grade(task, Text("while True: pass"), Conditions(timeout_s=1.0))
    assert (grade.reward, grade.trouble) == (None, Trouble.TIMED_OUT)
    assert "timeout" in grade.evidence
    assert grade.cpu_s > 0.5


def test_contradicted_tests_pay_nobody(double):
    assert double(OWN["reference"], tests=("assert double(2) == 4", "assert double(2) == 5")).reward == 0.0


def test_conditions_reach_the_program(opened, rows):
    environment = opened(rows({**OWN, "tests": ["import os\nassert (os.environ['PYTHONHASHSEED'], os.environ['TZ']) == ('5', 'Asia/Tokyo')"]}))
    (task,) = environment.tasks()
    assert environment.grade(task, task.reference, Conditions(seed=5, timezone="Asia/Tokyo")).reward == 1.0
    assert environment.grade(task, task.reference).reward == 0.0


def test_a_grade_sees_nothing_of_the_one_before(opened, rows):
    environment = opened(rows({**OWN, "tests": ["import os\nassert not os.path.exists('/tmp/mark')\nopen('/tmp/mark', 'w').close()"]}))
    (task,) = environment.tasks()
    assert [environment.grade(task, task.reference).reward for _ in range(2)] == [1.0, 1.0]


def test_a_network_that_no_box_has_is_refused(opened, rows):
    environment = opened(rows(OWN))
    (task,) = environment.tasks()
    assert environment.grade(task, task.reference, Conditions(network=True)).trouble is Trouble.REFUSED
    assert environment.grade(task, Script("true")).trouble is Trouble.REFUSED


def test_text_that_is_no_python_and_no_unicode_is_only_wrong(double):
    assert double("def double(x:").reward == 0.0
    assert double("x = '\ud800'").reward in (0.0, None)
    assert double("(" * 5000).reward == 0.0


def test_versions_speak_of_content(opened, rows):
    first, again, other = (opened(rows(row)) for row in (OWN, OWN, {**OWN, "tests": ["assert double(3) == 6"]}))
    assert first.version == again.version != other.version
    assert first.verifier_digest == again.verifier_digest != other.verifier_digest
    reworded = opened(rows({**OWN, "prompt": "Twice."}))
    assert (reworded.version == first.version, reworded.verifier_digest == first.verifier_digest) == (False, True)


def test_ids_that_come_twice_are_told_apart(opened, rows):
    assert [task.id for task in opened(rows(OWN, OWN)).tasks()] == ["double", "double#2"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({**OWN, "tests": []}, "rows.jsonl:1: tests is empty"),
        ({**OWN, "tests": 3}, "rows.jsonl:1: tests is 3, not a list of strings"),
        ({**OWN, "task_id": None}, "rows.jsonl:1: task_id is None"),
        ({**MBPP, "text": 5}, "rows.jsonl:1: text is 5, not a string"),
        ({"prompt": "x"}, "neither tests nor gold actions"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(opened, rows, row, said):
    with pytest.raises(Unreadable, match=said):
        opened(rows(row))


@pytest.mark.slow
def test_the_known_answers_of_mbpp_hold(opened, public_data):
    import csv

    environment = opened(public_data / "mbpp" / "mbpp.jsonl.gz")
    with (public_data / "mbpp" / "labels.csv").open() as file:
        labels = {row["task_id"]: row for row in csv.DictReader(file)}
    for task in environment.tasks():
        assert environment.grade(task, task.reference).reward == 1.0, task.id
        assert (environment.grade(task, Text("")).reward == 1.0) == (labels[task.id]["noop"] == "PASS"), task.id


FORGED = """
import os, sys
frame = sys._getframe()
while frame is not None:
    for value in list(frame.f_locals.values()):
        if isinstance(value, bytes) and len(value) == 32:
            for number in range(3, 64):
                try:
                    os.write(number, value)
                except OSError:
                    pass
    frame = frame.f_back
os._exit(0)
"""


def test_a_program_that_walks_up_to_its_judge_is_paid_as_nothing_in_one_process_can_prevent(double):
    assert double(FORGED).reward == 1.0


def test_a_program_that_uses_up_the_memory_it_may_use_has_failed(backend, rows):
    limits = dataclasses.replace(LIMITS, memory_bytes=100 << 20)
    environment = BenchmarkRows("rows", read_rows(rows(OWN)), backend, limits=limits)
    (task,) = environment.tasks()
    grade = environment.grade(task, Text("x = bytearray(200 << 20)"))
    assert (grade.reward, grade.trouble) == (0.0, None)
    assert "out of memory: it used 100 MiB" in grade.evidence


@pytest.mark.parametrize("peak", [None, 10 << 20])
def test_a_program_that_ends_for_want_of_the_machines_memory_has_no_grade(peak):
    result = Result(Ended.OUT_OF_MEMORY, None, b"", b"", 0, 1.0, 1.0, peak)
    assert boxes.ended(result, 60.0, 1 << 30).trouble is Trouble.REFUSED
    assert boxes.ended(dataclasses.replace(result, peak_bytes=1 << 30), 60.0).trouble is Trouble.REFUSED
