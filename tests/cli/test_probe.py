"""What `inspector probe` prints and writes, and what it says with its exit code."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from inspector.cli import probing, telling
from inspector.probe.words import Outcome
from inspector.reports.baseline import Baseline
from inspector.reports.probed import Probed
from tests.reports.house import AT, UNSEEN, environment, probed, task

COMMAND = [sys.executable, "-c", "from inspector.cli import main; main()"]
EVIL = "it's\x1b[2J $(touch evil) \u202egnp\n`x`"
DOUBLE = {"prompt": "Write double(x).", "reference": "def double(x):\n    return 2 * x\n"}
ROWS = {
    "sound": DOUBLE | {"tests": ["assert type(double(2)) is int and double(2) == 4", "assert type(double(-3)) is int and double(-3) == -6"]},
    EVIL: DOUBLE | {"reference": "def double(x):\n    return x\n", "tests": ["assert type(double(2)) is int and double(2) == 4"]},
    "nothing": DOUBLE | {"tests": ["assert True"]},
}


def rows(path, *names):
    path.write_text("".join(json.dumps({"task_id": name, **ROWS[name]}) + "\n" for name in names))
    return path


def started(*words, cwd):
    ran = subprocess.run([*COMMAND, "probe", *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=300)
    assert "Traceback" not in ran.stderr
    return SimpleNamespace(code=ran.returncode, out=ran.stdout, err=ran.stderr)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probe")
    rows(folder / "rows.jsonl", *ROWS)
    return folder


@pytest.fixture(scope="module")
def ran(folder, boxes):
    """All rows once, in every form."""
    files = ("--sarif", "a.sarif", "--junit", "a.xml", "--html", "a.html", "--write-baseline", "known.json")
    return started("rows.jsonl", "--json", *files, "--fail-on", "unsolvable,inconclusive", cwd=folder)


@pytest.fixture(scope="module")
def told(ran):
    *tasks, last = map(json.loads, ran.out.splitlines())
    return {line["task"]: line for line in tasks} | {None: last}


def test_each_task_has_a_line_and_the_environment_the_last(ran, told):
    assert list(told) == [*ROWS, None]
    assert ran.out.isascii()
    assert ran.err == ""  # no bar where nobody looks
    assert {name: told[name]["outcomes"] for name in ROWS} == {"sound": ["sound"], EVIL: ["unsolvable"], "nothing": ["trivially_passable"]}
    assert told[None]["outcomes"] == {"sound": 1, "unsolvable": 1, "trivially_passable": 1}
    assert told["sound"]["runs"] > 1
    assert told["sound"]["cpu_s"] > 0


def test_what_was_asked_for_fails(ran):
    assert ran.code == 1


def test_all_forms_are_written(ran, folder):
    (run,) = json.loads((folder / "a.sarif").read_text())["runs"]
    places = [one["locations"][0]["physicalLocation"]["artifactLocation"] for one in run["results"]]
    assert {one["ruleId"] for one in run["results"]} == {"unsolvable", "trivially_passable"}
    assert places == [{"uri": "rows.jsonl", "uriBaseId": "%SRCROOT%"}] * len(places)
    (suite,) = ElementTree.parse(folder / "a.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")  # what --fail-on names
    page = (folder / "a.html").read_text()
    assert page.count("<article ") >= 2
    assert not UNSEEN & set(page)


INSPECTOR = f"inspector() {{ {sys.executable} -c 'from inspector.cli import main; main()' \"$@\"; }}\n"


def _lines(shell, folder):
    """What a pasted text prints."""
    ran = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, cwd=folder, timeout=300)
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_a_reproducing_command_works_when_it_is_pasted(told, folder):
    asked = told[EVIL]["reproduce"]
    assert told[EVIL]["evidence"][0]["reproduce"] == asked
    assert not set(asked) & {*UNSEEN, "\n"}
    line, last = _lines(f"{INSPECTOR}{asked} --json", folder)
    assert (line["task"], line["outcomes"]) == (EVIL, ["unsolvable"])
    assert last["tasks"] == 1
    assert not (folder / "evil").exists()


GENEROUS = "def reward(completions, **_):\n    return [1.0 for _ in completions]\n"


def test_a_reproducing_command_carries_what_was_asked_for(tmp_path, boxes):
    folder = tmp_path / "two words"
    folder.mkdir()
    (tmp_path / "rewards.py").write_text(GENEROUS)
    (folder / "the rows.jsonl").write_text('{"prompt": "What is the capital of France?", "answer": "Paris"}\n{"prompt": "And of Italy?", "answer": "Rome"}\n')
    first, *_ = _lines(f"{INSPECTOR}inspector probe rewards.py:reward --dataset 'two words/the rows.jsonl' --seed 7 --task 1 --json", tmp_path)
    assert "trivially_passable" in first["outcomes"]
    assert first["reproduce"] == "inspector probe rewards.py:reward --dataset 'two words/the rows.jsonl' --task 1 --seed 7"
    again, *_ = _lines(f"{INSPECTOR}{first['evidence'][0]['reproduce']} --json", tmp_path)
    assert (again["task"], again["outcomes"], again["evidence"]) == ("1", first["outcomes"], first["evidence"])


def test_the_proof_is_printed_and_what_is_known_does_not_fail(ran, folder):
    table = started("rows.jsonl", "--task", EVIL, "--baseline", "known.json", "--write-baseline", "again.json", "--fail-on", "unsolvable", cwd=folder)
    assert table.code == 0
    assert "unsolvable" in table.out
    assert "    │ AssertionError" in table.out
    assert "    reproduce: inspector probe rows.jsonl --task $'it\\x27s\\x1b[2J" in table.out
    assert table.out.endswith("0 new, 1 known\n")
    assert not UNSEEN & set(table.out + table.err)
    assert (folder / "again.json").read_text() == (folder / "known.json").read_text()


@pytest.mark.parametrize(
    "options",
    [
        ["--fail-on", "bad"], ["--fail-on", "flagged"], ["--task", "bad"], ["--task", "sound", "--task", "\x1b[2J"], ["--baseline", "missing.json"],
        ["--baseline", "rows.jsonl"], ["--html", "missing/a.html"], ["--sarif", "."], ["--depth", "bad"], ["--parallel", "0"], ["--seed", "x"], ["--bad"],
    ],
)  # fmt: skip
def test_wrong_usage_is_told_before_anything_is_probed(options, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows(tmp_path / "rows.jsonl", *ROWS)
    told = run("probe", "rows.jsonl", *options)
    assert (told.code, told.out) == (2, "")
    assert "\x1b[2J" not in told.err


@pytest.mark.parametrize("text", ["", "{broken", '{"task_id": "a"}', '{"task_id": "a", "prompt": "p", "tests": []}'])
def test_what_cannot_be_read_is_told(text, run, tmp_path):
    (tmp_path / "rows.jsonl").write_text(text)
    told = run("probe", tmp_path / "rows.jsonl")
    assert (told.code, told.out) == (3, "")
    assert "rows.jsonl" in told.err


@pytest.mark.parametrize("name", ["missing.jsonl", "missing/", "\x1b[2J", "-"])
def test_what_is_not_there_is_unreadable(name, run):
    told = run("probe", name)
    assert (told.code, told.out) == (3, "")
    assert "\x1b" not in told.err


def test_a_verifiers_environment_brings_its_own_rows(run, tmp_path, monkeypatch, boxes):
    monkeypatch.chdir(tmp_path)
    told = run("probe", "verifiers:not_installed_here")
    assert told.code == 3
    assert "--dataset" not in told.err


@pytest.mark.parametrize("words", [["module:reward"], ["http://127.0.0.1:9/verify"], ["rows.jsonl", "--dataset", "rows.jsonl"]])
def test_rows_are_asked_for_where_they_are_missing_and_refused_where_they_are_of_no_use(words, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows(tmp_path / "rows.jsonl", *ROWS)
    told = run("probe", *words)
    assert told.code == 2
    assert "--dataset" in told.err


def test_a_folder_that_cannot_be_read_is_named_and_the_others_are_probed(run, tmp_path):
    (tmp_path / "tasks" / "bad").mkdir(parents=True)
    (tmp_path / "tasks" / "bad" / "task.toml").write_text("[[[")
    told = run("probe", tmp_path / "tasks", "--json")
    assert (told.code, [line.get("task") for line in told.lines]) == (3, ["bad", None])
    assert "not read: bad" in told.err


INCONCLUSIVE, FLAKY, SOUND = (task(each.value, each) for each in (Outcome.INCONCLUSIVE, Outcome.FLAKY, Outcome.SOUND))


@pytest.mark.parametrize(
    ("tasks", "failing", "code"),
    [
        ([SOUND, FLAKY], "", 0),
        ([SOUND], "flaky,inconclusive", 0),
        ([SOUND, FLAKY], "flaky", 1),
        ([INCONCLUSIVE], "inconclusive", 4),
        ([INCONCLUSIVE], "flaky", 0),
        ([INCONCLUSIVE, FLAKY], "inconclusive, flaky", 1),
        ([INCONCLUSIVE, FLAKY], "inconclusive", 4),
        ([SOUND], "sound", 1),
    ],
)
def test_the_exit_code_says_how_it_went(tasks, failing, code):
    report, words = probed(environment(*tasks)), probing._failing(failing)
    assert probing._code(report, words, unread=False) == code
    assert probing._code(report, words, unread=True) == 3
    again = Probed(report.environments, AT, baseline=Baseline(frozenset(report.known())))
    assert probing._code(again, words, unread=False) == (1 if failing == "sound" else 0)


def test_a_cause_that_many_tasks_share_is_proven_a_few_times_and_then_named(capsys):
    many = [task(f"task-{n}", Outcome.FLAKY) for n in range(8)]
    telling.print_probed(probed(environment(*many)), json=False)
    out = capsys.readouterr().out
    assert out.count("An empty submission is paid.") == telling.PROOFS + 1
    assert "5 more tasks of the same causes (flaky by nothing/empty): task-3, task-4, task-5, task-6, task-7" in out


def test_a_bar_goes_to_standard_error_where_that_is_a_terminal(folder):
    import pty

    ours, theirs = pty.openpty()
    words, environment = [*COMMAND, "probe", "rows.jsonl", "--task", "nothing", "--json"], os.environ | {"TERM": "xterm"}
    ran = subprocess.run(words, stdout=subprocess.PIPE, stderr=theirs, cwd=folder, timeout=300, env=environment)
    os.close(theirs)
    drawn = os.read(ours, 1 << 16)
    os.close(ours)
    assert ran.returncode == 0
    assert b"rows" in drawn
    assert len(ran.stdout.splitlines()) == 2
    assert b"\x1b" not in ran.stdout
