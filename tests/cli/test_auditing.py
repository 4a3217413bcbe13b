"""What `inspector audit` prints, and what it says with its exit code."""

import json

import pytest

from inspector import catalog
from inspector.testing import envelope

UNPAID = {"id": "unpaid", "reward": 0.0}  # although all its tests passed
CUT = {"id": "cut", "termination": {"reason": "submitted", "truncated": True}}
UNSUMMED = {"id": "unsummed", "rewards": {"tests": {"score": None, "weight": 1.0}}}  # inconclusive
GOOD = {"id": "good"}
NO_GROUP = {"group": None}


def episode(about):
    """No two have the same steps."""
    steps = [{"step_id": 1, "source": "user", "message": f"Do {about['id']}."}, {"step_id": 2, "source": "agent", "message": "Done."}]
    return envelope(steps=steps, **NO_GROUP, **about)


@pytest.mark.parametrize(
    ("posted", "options", "code"),
    [
        ([GOOD], [], 0),
        ([GOOD, UNPAID], [], 0),
        ([GOOD, UNPAID], ["--fail-on", "quarantine"], 1),
        ([GOOD, UNPAID], ["--fail-on", "flag,quarantine"], 1),
        ([GOOD, UNPAID], ["--fail-on", "flagged"], 1),
        ([GOOD], ["--fail-on", "flag,quarantine,flagged,error"], 0),
        ([GOOD], ["--fail-on", "not_assessed"], 1),
        ([UNSUMMED], ["--fail-on", "inconclusive"], 4),
        ([UNSUMMED], [], 0),
        ([GOOD], ["--fail-on", "inconclusive"], 0),
        ([UNSUMMED, UNPAID], ["--fail-on", "inconclusive,quarantine"], 1),
        ([UNPAID], ["--fail-on", "quarantine", "--ignore", "builtin/unpaid_although_all_passed"], 0),
        ([UNPAID], ["--fail-on", "quarantine", "--select", "builtin/record_*,builtin/ending_contradicts_itself"], 0),
        ([UNPAID, CUT], ["--fail-on", "quarantine", "--select", "builtin/ending_contradicts_itself"], 1),
        ([GOOD], ["--fail-on", "bad"], 2),
        ([GOOD], ["--format", "bad"], 2),
        ([GOOD], ["--select", "bad"], 2),
        ([GOOD], ["--ignore", "builtin"], 2),
        ([GOOD], ["--environment", "missing.yaml"], 2),
        ([GOOD], ["--policy", "missing.toml"], 2),
        ([GOOD], ["--as", "nowhere"], 2),
        ([GOOD], ["--bad"], 2),
        ([], [], 3),
        (["{broken", GOOD], [], 3),
        (["{broken", GOOD, UNPAID], ["--fail-on", "quarantine"], 3),
    ],
)
@pytest.mark.parametrize("json", [[], ["--json"]])
def test_the_exit_code_says_how_it_went(run, written, posted, options, code, json):
    file = written(*[one if isinstance(one, str) else episode(one) for one in posted])
    assert run("audit", file, *options, *json).code == code


def test_good_lines_are_audited_beside_bad_ones_which_are_listed(run, written):
    file = written(
        "{broken", episode(GOOD), '{"id": "x", "environment": {"id": "", "version": "1"}, "task": {"id": "t"}, "reward": 1, "trajectory": {"steps": []}}'
    )
    ran = run("audit", file, "--json")
    assert [line["id"] for line in ran.lines] == ["good"]
    assert f"{file}:1" in ran.err
    assert f"{file}:3" in ran.err


def test_a_file_that_is_not_there_is_unreadable_and_the_others_are_audited(run, written, tmp_path):
    ran = run("audit", tmp_path / "missing.jsonl", written(episode(GOOD)), "--json")
    assert (ran.code, [line["id"] for line in ran.lines]) == (3, ["good"])
    assert "no such file" in ran.err


def test_a_line_says_what_design_promises(run, written):
    (line,) = run("audit", written(episode(UNPAID)), "--json").lines
    assert list(line) == ["id", "verdict", "probability", "action", "reward_override", "cause", "findings", "coverage"]
    assert (line["id"], line["verdict"], line["action"], line["reward_override"], line["cause"]) == ("unpaid", "quarantine", "exclude", None, "verifier_defect")
    (finding,) = line["findings"]
    assert list(finding) == ["check", "version", "tier", "cause", "score", "message", "spans"]
    assert line["coverage"].keys() == catalog.load().checks.keys()
    assert set(line["coverage"].values()) <= {"clean", "flagged", "inconclusive", "not_assessed", "error"}


def test_spans_are_whole(run, written, monkeypatch):
    from inspector.check import Cause, Finding, Span, Tier, Trajectory, check

    @check(version=3, tier=Tier.ACTION, cause=Cause.POLICY_EXPLOIT)
    def points(trajectory: Trajectory):
        """It points at the very beginning."""
        yield Finding(message="there", score=0.5, spans=(Span(step=0, field="message"),))

    monkeypatch.setattr(catalog, "load", lambda: catalog.Catalog({"mine/points": points.qualified("mine")}))
    (line,) = run("audit", written(episode(GOOD)), "--json").lines
    assert line["findings"][0]["spans"] == [{"step": 0, "field": "message", "start": 0, "end": 0, "quote": ""}]


def test_the_table_tells_the_worst_first_why_and_sums_up(run, written):
    out = run("audit", written(episode(GOOD), episode(UNPAID))).out
    assert out.index("unpaid") < out.index("good")
    assert "unpaid_although_all_passed: the verifier paid 0" in out
    assert "acme/terminal 2026.11.1" in out
    assert "not_assessed" in out


HOSTILE = "\u202eevil\u200b[red]x[/red]\u2066"


def test_hostile_text_is_shown_and_obeyed_by_nobody(run, written):
    posted = episode({"id": f"a{HOSTILE}", "reward": 0.0}) | {"environment": {"id": f"acme/{HOSTILE}", "version": "1"}, "task": {"id": HOSTILE}}
    broken = '{"id": "\x1b[2J'
    ran = run("audit", written(posted, broken, episode({"id": "group"}) | {"group": {"id": HOSTILE}}))
    for shown in (ran.out, ran.err):
        assert not set(shown) & set("\x1b\u202e\u200b\u2066")
    assert "\\u{202e}evil\\u{200b}[red]x[/red]" in ran.out


def test_hostile_text_in_json_is_escaped_and_whole(run, written):
    ran = run("audit", written(episode({"id": f"a{HOSTILE}"})), "--json")
    assert ran.out.isascii()
    assert ran.lines[0]["id"] == f"a{HOSTILE}"


def test_the_same_line_twice_counts_once_and_another_under_its_id_is_refused(run, written):
    twice = run("audit", written(episode(GOOD), episode(GOOD)), "--json")
    assert (twice.code, len(twice.lines)) == (0, 1)
    conflict = run("audit", written(episode(GOOD), episode(GOOD | {"reward": 0.5})), "--json")
    assert (conflict.code, len(conflict.lines)) == (3, 1)
    assert "'good'" in conflict.err


def test_a_declaration_is_heeded(run, written, tmp_path):
    declared = tmp_path / "d.yaml"
    declared.write_text("id: acme/terminal\nversion: 2026.11.1\nreward: {min: 0, max: 0.5}\n")
    (line,) = run("audit", written(episode(GOOD)), "--environment", declared, "--json").lines
    assert line["coverage"]["builtin/reward_outside_declared_range"] == "flagged"


def test_records_without_an_environment_are_of_the_only_declared_one(run, written, tmp_path):
    declared = tmp_path / "d.json"
    declared.write_text(json.dumps([{"id": "acme/chat", "version": "7", "reward": {"min": 0, "max": 1}}]))
    chat = {"messages": [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "Done."}], "reward": 2.0}
    (line,) = run("audit", written(chat), "--environment", declared, "--json").lines
    assert line["verdict"] == "quarantine"
    (line,) = run("audit", written(chat), "--environment", declared, "--as", "acme/other@1", "--json").lines
    assert line["verdict"] == "accept"


def test_reasoning_is_dropped_before_any_check_sees_it(run, written, monkeypatch):
    from inspector.check import Cause, Finding, Tier, Trajectory, check

    @check(version=1, tier=Tier.TEXT, cause=Cause.POLICY_EXPLOIT)
    def secret(trajectory: Trajectory):
        """It looks for a word everywhere."""
        if any("SECRET" in repr(step) for step in trajectory.steps):
            yield Finding(message="found")

    monkeypatch.setattr(catalog, "load", lambda: catalog.Catalog({"mine/secret": secret.qualified("mine")}))
    steps = [
        {"step_id": 1, "source": "agent", "message": "<think>SECRET</think>Done.", "reasoning_content": "SECRET", "extra": {"reasoning_details": ["SECRET"]}}
    ]
    file = written(envelope(steps=steps, **NO_GROUP))
    assert run("audit", file, "--json").lines[0]["coverage"] == {"mine/secret": "flagged"}
    assert run("audit", file, "--json", "--without-reasoning").lines[0]["coverage"] == {"mine/secret": "clean"}


def test_progress_at_a_terminal_stays_out_of_the_output(tmp_path, written):
    """Standard error is a terminal, standard output a file."""
    import os
    import pty
    import subprocess
    import sys

    ours, theirs = pty.openpty()
    words = ["audit", str(written(episode(GOOD), episode(UNPAID))), "--json"]
    command = [sys.executable, "-c", "from inspector.cli import main; main()", *words]
    with (tmp_path / "out").open("wb") as out:
        ran = subprocess.run(command, stdout=out, stderr=theirs, stdin=subprocess.DEVNULL, timeout=60, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    drawn = os.read(ours, 1 << 16)
    os.close(ours)
    assert (ran.returncode, b"checking" in drawn) == (0, True)
    assert [json.loads(line)["id"] for line in (tmp_path / "out").read_bytes().splitlines()] == ["good", "unpaid"]


def test_what_is_ordinary_is_not_guessed_from_the_files_themselves(run, written):
    out = " ".join(run("audit", written(envelope())).out.split())
    assert "builtin/unlike_its_environment not assessed, 1 times" in out
    assert "name files of ordinary episodes to compare with (audit --baseline FILES)" in out


def test_too_few_to_compare_with_is_a_wrong_use(run, written):
    ran = run("audit", written(envelope()), "--baseline", written(envelope(), name="past.jsonl"))
    assert ran.code == 2
    assert "1 episodes to compare with, where 1500 are needed" in ran.err
