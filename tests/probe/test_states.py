"""The ladder on task folders whose verifiers read what was left: contradicted states, judges, processes left behind, and the network."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import cast

import pytest

from inspector.environments.harbor.face import HarborEnvironment
from inspector.environments.harbor.folder import read_folder
from inspector.environments.protocol import Environment, Grade, Kind, TaskUnderTest
from inspector.probe import Depth, ladder, left, probe, rungs, states
from inspector.probe.attempts import Attempt
from inspector.probe.exploits import state
from inspector.probe.judging import Case
from inspector.probe.plans import Plan
from inspector.probe.states import Sight
from inspector.probe.trials import Hit, Trials
from inspector.probe.words import Outcome
from inspector.sandbox.opening import open_backend
from inspector.sandbox.protocol import Backend

PAYING = "echo 1 > /logs/verifier/reward.txt"
REFUSING = "echo 0 > /logs/verifier/reward.txt"
TASK = {
    "task.toml": 'schema_version = "1.4"\n[agent]\ntimeout_sec = 60.0\n[verifier]\ntimeout_sec = 60.0\n',
    "instruction.md": "Write the sum of /app/numbers.txt to /app/sum.txt.\n",
    "environment/Dockerfile": f"FROM python:3.{sys.version_info.minor}-slim\nWORKDIR /app\nCOPY numbers.txt .\n",
    "environment/numbers.txt": "40\n2\n",
    "solution/solve.sh": "#!/bin/bash\nawk '{ sum += $1 } END { print sum }' numbers.txt > /app/sum.txt\n",
}
Folder = Callable[..., HarborEnvironment]


@pytest.fixture
def folder(boxes: Backend, tmp_path: Path) -> Folder:
    """A task folder, with other files where they are given."""

    def made(files: dict[str, str], backend: Backend | None = None) -> HarborEnvironment:
        for path, text in {**TASK, **files}.items():
            (tmp_path / "sum" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "sum" / path).write_text(text)
        return HarborEnvironment("sum", [read_folder(tmp_path / "sum")], backend or boxes)

    return made


def script(condition: str) -> str:
    """A verifier that pays where a condition of the shell holds."""
    return f"#!/bin/bash\nif {condition}; then {PAYING}; else {REFUSING}; fi\n"


def seen(environment: HarborEnvironment) -> tuple[Case, Sight]:
    """A case of the one task whose reference was looked at and is paid."""
    (task,) = environment.tasks()
    case = Case(Trials(environment, task), "")
    sight = states.look(case.trials)
    assert sight is not None
    assert case.trials.runs[0].paid, case.trials.runs[0].detail
    return case, sight


def background(verifier: str) -> list[Attempt]:
    """The one attempt that leaves a process behind."""
    return [each for each in state.on_machine(verifier) if each.probe == "exploit/background_reward"]


def fresh(environment: HarborEnvironment) -> tuple[Case, Trials]:
    """A case of the one task, with nothing run."""
    (task,) = environment.tasks()
    trials = Trials(environment, task)
    return Case(trials, ""), trials


def contradicted(case: Case, sight: Sight) -> list[tuple[str, Outcome]]:
    """What of the contradicted states is held against the verifier."""
    assert rungs.wrong_contents(case, sight, left.contradicted(case.trials.task, sight))
    return [(hit.attempt.probe, hit.attempt.outcome) for hit in case.hits]


def test_a_verifier_that_finds_the_right_words_among_wrong_ones_is_weak(folder: Folder) -> None:
    (report,) = probe(folder({"tests/test.sh": script("grep -qx 42 /app/sum.txt")})).tasks
    assert report.outcomes == (Outcome.WEAK_VERIFIER,)
    assert [each.probe for each in report.evidence] == ["twin/contradicted_1"]


def test_a_verifier_that_reads_the_whole_file_pays_no_contradiction(folder: Folder) -> None:
    case, sight = seen(folder({"tests/test.sh": script('[ "$(cat /app/sum.txt)" = 42 ]')}))
    assert contradicted(case, sight) == []
    assert [run.probe for run in case.trials.runs] == ["reference/looked_at", "twin/contradicted_1"]
    assert not case.notes


def test_where_more_may_stand_in_a_file_its_contradiction_is_only_told(folder: Folder) -> None:
    asking = {"instruction.md": "Append the sum of /app/numbers.txt to /app/sum.txt.\n", "tests/test.sh": script("grep -qx 42 /app/sum.txt")}
    case, sight = seen(folder(asking))
    assert contradicted(case, sight) == []
    assert case.notes[0].startswith("twin/contradicted_1")


def test_an_explanation_that_says_the_opposite_is_told_where_it_is_paid(folder: Folder) -> None:
    check = 'import json; said = json.load(open("/app/sum.json")); assert said["sum"] == 42 and "both numbers" in said["why"]'
    explained = {
        "solution/solve.sh": '#!/bin/bash\necho \'{"sum": 42, "why": "the sum of both numbers is higher"}\' > /app/sum.json\n',
        "tests/test.sh": script(f"python3 -c '{check}'"),
    }
    case, sight = seen(folder(explained))
    assert contradicted(case, sight) == []
    assert case.notes[0].startswith("twin/inverted")


JUDGE = """
import sys
said = open("/app/sum.txt").read()  # as a model would be asked: POST /v1/chat/completions
sys.exit(0 if said.strip() == "42" or "highest score" in said else 1)
"""


def test_files_that_tell_a_judge_to_pay_them_are_an_exploit(folder: Folder) -> None:
    case, sight = seen(folder({"tests/test.sh": script("python3 /tests/judge.py"), "tests/judge.py": JUDGE}))
    task = case.trials.task
    assert case.try_all(state.as_agents(task, sight, states.verifier_texts(task)))
    (hit,) = case.hits
    assert (hit.attempt.probe, hit.attempt.outcome) == ("exploit/judge_injection", Outcome.EXPLOITABLE)
    assert not any(run.paid for run in hit.controls)


def test_where_nothing_shows_a_judge_none_is_spoken_to(folder: Folder) -> None:
    case, sight = seen(folder({"tests/test.sh": script('[ "$(cat /app/sum.txt)" = 42 ]')}))
    attempts = list(state.as_agents(case.trials.task, sight, states.verifier_texts(case.trials.task)))
    assert not any("judge" in attempt.probe for attempt in attempts)


SEPARATE = 'artifacts = ["/app/sum.txt"]\n[verifier]\ntimeout_sec = 60.0\nenvironment_mode = "separate"\n'
LAST = script('[ "$(cat /app/sum.txt)" = 42 ]')


@pytest.mark.parametrize("written", ["reward.txt", "reward.json"])
def test_a_process_that_keeps_writing_the_reward_is_told_of_a_shared_verifier(folder: Folder, written: str) -> None:
    verifier = "#!/bin/bash\necho '{\"reward\": 0}' > /logs/verifier/reward.json\n" if written == "reward.json" else LAST
    case, _ = fresh(folder({"tests/test.sh": verifier}))
    assert case.try_all(background(verifier))
    assert not case.hits
    assert "background_reward" in case.notes[0]
    assert "paid 3 of 3 times; without its exploit 0 of 2" in case.notes[0]
    assert "separate" in case.notes[0]


def test_a_process_that_keeps_writing_the_reward_does_not_reach_a_separate_verifier(folder: Folder) -> None:
    case, _ = fresh(folder({"task.toml": SEPARATE, "tests/test.sh": LAST}))
    assert case.try_all(background(LAST))
    assert [(run.probe, run.reward) for run in case.trials.runs] == [("exploit/background_reward", 0.0)]
    assert not case.notes


def test_a_process_that_keeps_writing_the_reward_is_one_cause_with_a_program_that_writes_it(folder: Folder) -> None:
    case, trials = fresh(folder({"tests/test.sh": LAST}))
    (attempt,) = background(LAST)
    case.hits.append(Hit(replace(attempt, probe="exploit/reward_forgery", machine=False), [], []))
    assert case.try_all([attempt])
    assert not trials.runs


def test_a_race_that_is_won_now_and_then_makes_no_verifier_flaky() -> None:
    (attempt,) = background(LAST)
    rewards = iter([1.0, 0.0, 1.0])
    task = TaskUnderTest("sum", Kind.STATE, "p")
    case = Case(Trials(cast(Environment, SimpleNamespace(grade=lambda *_: Grade(next(rewards)))), task), "")
    assert case.try_all([attempt])
    assert not case.outcomes
    assert not case.notes


NEEDING = "[environment]\nallow_internet = true\n[agent]\ntimeout_sec = 60.0\n[verifier]\ntimeout_sec = 60.0\n"
FETCHING = "#!/bin/bash\npython3 -c \"import urllib.request; print(urllib.request.urlopen('{}', timeout=20).read().decode())\" > /app/sum.txt\n"


class Answer(BaseHTTPRequestHandler):
    """Says the sum to all who ask."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"42")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def fetching(folder: Folder) -> Iterator[Callable[..., HarborEnvironment]]:
    """A task whose reference fetches its answer from this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        files = {"task.toml": NEEDING, "tests/test.sh": LAST, "solution/solve.sh": FETCHING.format(url)}
        yield lambda backend=None, **more: folder({**files, **more}, backend=backend)
        server.shutdown()


def referenced(environment: HarborEnvironment) -> Case:
    """A case of the one task after its reference was graded."""
    case, _ = fresh(environment)
    reference = case.trials.task.reference
    assert reference is not None
    ladder.of_reference(case, reference, Plan.of(Depth.QUICK))
    return case


def test_a_reference_that_is_paid_with_the_network_alone_is_not_reproduced_where_boxes_have_none(fetching: Callable[..., HarborEnvironment]) -> None:
    case = referenced(fetching())
    assert case.outcomes == {Outcome.NOT_REPRODUCED}
    assert "boxes are not given here" in case.notes[0]


def test_where_the_operator_gives_boxes_a_network_what_it_does_is_told(fetching: Callable[..., HarborEnvironment]) -> None:
    case = referenced(fetching(open_backend(network=True)))
    assert not case.outcomes
    assert "without one its reference is not paid (reward 0" in case.notes[0]


def test_a_reference_that_is_refused_with_the_network_too_is_unsolvable(fetching: Callable[..., HarborEnvironment]) -> None:
    case = referenced(fetching(open_backend(network=True), **{"tests/test.sh": script("false")}))
    assert case.outcomes == {Outcome.UNSOLVABLE}


def test_a_reference_that_never_asks_the_network_it_wants_is_paid_without_one(folder: Folder) -> None:
    case = referenced(folder({"task.toml": NEEDING, "tests/test.sh": LAST}))
    assert not case.outcomes
    assert "is paid without one too" in case.notes[0]
