"""The commands that talk to the service, on a whole one."""

import json
import subprocess
import sys
import threading

import pytest

from inspector.cli import demo
from inspector.client import Api
from inspector.demo.comparison import Seen, folder
from inspector.demo.ordinary import ordinary
from inspector.embedded import Stack
from inspector.settings import Settings
from inspector.testing import envelope

EAGER = Settings(learn_every_s=demo.LEARN_EVERY_S)


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    with Stack(tmp_path_factory.mktemp("service"), parts={"postgres", "redis", "migrations", "keys", "api", "worker", "beat"}, settings=EAGER) as stack:
        yield stack


@pytest.fixture
def ask(run, stack):
    """A command, told where the service is by its folder."""
    return lambda *words: run(*words, "--data", stack.data)


def episode(id_, environment="acme/cli", **about):
    steps = [{"step_id": 1, "source": "user", "message": id_}, {"step_id": 2, "source": "agent", "message": "Done."}]
    return envelope(steps=steps, id=id_, **{"group": None, "environment": {"id": environment, "version": "1"}, **about})


CUT = {"termination": {"reason": "submitted", "truncated": True}}


def test_the_service_says_what_an_audit_of_the_files_says(stack, run, tmp_path):
    past = tmp_path / "past.jsonl"
    past.write_bytes(b"".join(line + b"\n" for line in ordinary()))
    with Api(stack.api_url, stack.keys["owner"]) as owner, Api(stack.api_url, stack.keys["trainer"]) as trainer:
        served = demo.judged(owner, trainer, 120, lambda *_: None)
        odd = owner.trajectory_by_id("tally-3-0417-rent")
        listed = {check["name"] for check in owner.get("/v1/checks")["checks"]}
    assert "builtin/unlike_its_environment" in listed
    assert (odd["summary"]["verdict"], odd["summary"]["action"], odd["policy"]) == ("flag", "keep", "default@3")
    assert "answers of tools that speak of an error: 62 of 62 (usually 0%)" in odd["findings"][0]["message"]
    lines = run("audit", folder() / "trajectories", "--environment", folder() / "declarations.yaml", "--baseline", past, "--json").lines
    assert len(lines) == len(json.loads((folder() / "expected.json").read_text())["trajectories"])
    assert served == {line["id"]: seen(line) for line in lines}


def seen(line):
    return Seen(line["verdict"], line["action"], line["cause"], frozenset(finding["check"] for finding in line["findings"]))


def test_status_tells_whose_key_it_is_and_how_far_the_feed_is(ask):
    ran = ask("status", "--json")
    (told,) = ran.lines
    assert (ran.code, told["ready"], told["role"]) == (0, True, "owner")
    assert {"project", "epoch", "seq"} <= told.keys()
    assert "ready" in ask("status").out


def test_posting_twice_is_posting_once(ask, written):
    file = written(episode("twice"), episode("twice-2"))
    assert [line["status"] for line in ask("post", file, "--json").lines] == ["created", "created"]
    again = ask("post", file)
    assert (again.code, again.out) == (0, "2 duplicate\n")
    conflict = ask("post", written(episode("twice", reward=0.5)), "--json")
    assert (conflict.code, conflict.lines[0]["status"]) == (1, "conflict")


def test_what_cannot_be_read_is_told_and_the_rest_is_posted(ask, written):
    file = written("{broken", episode("beside-broken"))
    ran = ask("post", file, "--json")
    assert (ran.code, [line["id"] for line in ran.lines]) == (3, ["beside-broken"])
    assert f"{file}:1" in ran.err


def test_decisions_come_with_the_post_where_they_are_waited_for(ask, written):
    (good, cut) = ask("post", written(episode("wait-good"), episode("wait-cut", **CUT)), "--wait", "60", "--json").lines
    assert (good["decision"]["action"], cut["decision"]["action"]) == ("keep", "exclude")


def test_the_feed_is_read_on_from_where_it_was(ask, written):
    ask("post", written(episode("feed-1", **CUT), episode("feed-2", **CUT)), "--wait", "60")
    lines = ask("decisions", "--json").lines
    assert {"feed-1", "feed-2"} <= {line["trajectory"] for line in lines}
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert ask("decisions", "--json", "--after", len(lines) - 1).lines == lines[-1:]
    assert "feed-1" in ask("decisions").out


def test_following_shows_what_is_decided_from_now_on(ask, stack, written):
    seq = ask("status", "--json").lines[0]["seq"]
    words = ["decisions", "--follow", "--json", "--after", str(seq), "--data", str(stack.data)]
    follower = subprocess.Popen([sys.executable, "-c", "from inspector.cli import main; main()", *words], stdout=subprocess.PIPE, text=True)
    end = threading.Timer(60, follower.kill)
    end.start()
    try:
        ask("post", written(episode("followed", **CUT)))
        assert json.loads(follower.stdout.readline())["trajectory"] == "followed"
    finally:
        end.cancel()
        follower.kill()
        follower.communicate(timeout=10)


def test_hostile_names_are_shown_and_obeyed_by_nobody(ask, written):
    ask("post", written(episode("\u202eevil\u200b[red]", **CUT)), "--wait", "60")
    out = ask("decisions").out
    assert "\\u{202e}evil\\u{200b}[red]" in out
    assert not set(out) & set("\x1b\u202e\u200b")


def test_a_check_is_taken_back_only_without_preview(ask, written):
    ask("post", written(episode("revoked", **CUT)), "--wait", "60")
    words = ("decisions", "revoke", "--check", "builtin/ending_contradicts_itself", "--version", "1")
    preview = ask(*words, "--preview", "--json").lines[0]
    assert (preview["preview"], preview["decisions"] > 0) == (True, True)
    assert ask(*words, "--preview", "--json").lines[0]["decisions"] == preview["decisions"]
    assert ask(*words).out.startswith(f"{preview['decisions']} decisions were taken back")
    assert ask(*words, "--preview", "--json").lines[0]["decisions"] == 0


def test_environments_are_declared_from_a_file_and_listed(ask):
    file = folder() / "declarations.yaml"
    assert "declared acme/terminal 2026.11.1 and 1 of its tasks" in ask("environments", "declare", file).out
    assert "acme/terminal" in {line["environment"] for line in ask("environments", "list", "--json").lines}


def test_half_of_a_wrong_file_is_not_sent(ask, tmp_path):
    file = tmp_path / "d.yaml"
    file.write_text("- {id: half/sent, version: '1'}\n- {id: half/sent, version: 2}\n")
    assert ask("environments", "declare", file).code == 2
    assert "half/sent" not in {line["environment"] for line in ask("environments", "list", "--json").lines}


def test_a_person_quarantines_and_releases(ask, written):
    ask("post", written(episode("state", environment="acme/state")))
    done = ask("environments", "quarantine", "acme/state@1", "--note", "its verifier pays all", "--json").lines[0]
    assert done["state"] == "quarantined"
    done = ask("environments", "release", "acme/state@1", "--note", "mended", "--probation", "--sampling-weight", "0.5", "--json").lines[0]
    assert (done["state"], done["sampling_weight"]) == ("probation", 0.5)
    assert "is active" in ask("environments", "release", "acme/state@1", "--note", "well again").out
    states = [line["state"] for line in ask("decisions", "--json").lines if line.get("environment") == "acme/state"]
    assert states == ["quarantined", "probation", "active"]
    assert ask("environments", "quarantine", "acme/state", "--note", "x").code == 2


def test_what_a_run_used_of_what_is_bad_is_told_and_listed_as_csv(ask, stack, written):
    failed = {"exit_code": 1, "tests": {"collected": 3, "passed": 2, "failed": 1}}
    assert ask("post", written(episode("=good", run={"id": "used"}), episode("=bad", run={"id": "used"}, verifier=failed)), "--wait", 60).code == 0
    with Api(stack.api_url, stack.keys["trainer"]) as trainer:
        used = [{"id": id_, "weight": 1.0, "reward": 1.0} for id_ in ("=good", "=bad")]
        trainer.post_step("used", 1, {"policy_before": 0, "policy_after": 1, "used": used})
    said = ask("runs", "contamination", "used")
    assert (said.code, "1 of 2 rows, 50.00% of the absolute reward" in said.out, "acme/cli@1: 1 rows" in said.out) == (0, True, True)
    header, line = ask("runs", "contamination", "used", "--list", "trajectories", "--csv").out.splitlines()
    assert (header.split(",")[:2], line.split(",")[:2]) == (["step", "id"], ["1", "'=bad"])
    assert ask("runs", "contamination", "used", "--cause", "infrastructure", "--json").lines == [
        {"summary": {**ask("runs", "contamination", "used", "--cause", "infrastructure", "--json").lines[0]["summary"], "bad_rows": 0}}
    ]
    [advice] = [d for d in ask("decisions", "--json").lines if d["action"] == "advise_rollback" and d["run"] == "used"]
    assert advice["rollback"]["policy_version"] == 0


def test_a_worker_advises_to_go_back_where_an_update_turns_out_bad(ask, stack, written):
    with Api(stack.api_url, stack.keys["trainer"]) as trainer:
        trainer.post_step("late", 1, {"policy_before": 0, "policy_after": 1, "checkpoint": "/saved/1"})
        trainer.post_step("late", 2, {"policy_before": 1, "policy_after": 2, "used": [{"id": "late-bad", "weight": 1.0, "reward": 1.0}]})
        head = trainer.decisions()["seq"]
        failed = {"exit_code": 1, "tests": {"collected": 3, "passed": 2, "failed": 1}}
        assert ask("post", written(episode("late-bad", run={"id": "late"}, verifier=failed)), "--wait", 60).code == 0
        told = []
        for _ in range(10):
            told += trainer.decisions(after=head, wait=5.0)["decisions"]
            head = max([head, *(decision["seq"] for decision in told)])
            if any(decision["action"] == "advise_rollback" for decision in told):
                break
    [advice] = [decision for decision in told if decision["action"] == "advise_rollback"]
    assert (advice["run"], advice["rollback"]["checkpoint"], advice["rollback"]["policy_version"]) == ("late", "/saved/1", 1)


def test_runs_are_listed_and_set_to_enforce(ask, written):
    ask("post", written(episode("of-a-run", run={"id": "cli-run"})))
    assert ask("runs", "mode", "cli-run", "enforce", "--json").lines[0]["mode"] == "enforce"
    assert {line["run"]: line["mode"] for line in ask("runs", "list", "--json").lines}["cli-run"] == "enforce"
    assert ask("runs", "mode", "cli-run", "obey").code == 2


def test_a_key_is_made_shown_once_and_ended(ask, run, stack, written):
    added = ask("keys", "add", "ci", "--role", "trainer", "--json").lines[0]
    file = written(episode("by-key"))
    assert run("post", file, "--url", stack.api_url, "--key", added["key"]).code == 0
    listed = ask("keys", "list").out
    assert added["id"] in listed
    assert added["key"] not in listed
    assert run("keys", "list", "--url", stack.api_url, "--key", added["key"]).code == 1
    assert ask("keys", "revoke", added["id"]).code == 0


def test_a_wrong_key_and_a_service_that_is_away_are_failures_told_in_a_line(run, stack, written, monkeypatch):
    wrong = run("decisions", "--url", stack.api_url, "--key", "ins_wrong")
    assert (wrong.code, wrong.err.count("\n")) == (1, 1)
    assert "401" in wrong.err
    monkeypatch.setenv("INSPECTOR_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("INSPECTOR_KEY", "ins_any")
    assert run("post", written(episode("x")), "--patience", "0").code == 1


def test_without_a_service_or_a_key_it_says_where_it_looked(run, tmp_path):
    nothing = run("status", "--data", tmp_path)
    assert (nothing.code, "INSPECTOR_URL" in nothing.err) == (2, True)
    assert run("status", "--data", tmp_path, "--url", "http://127.0.0.1:1").code == 2


def test_the_schema_is_brought_up_to_date_beside_the_running_service(ask):
    assert ask("db", "upgrade", "--json").lines == [{"upgraded": True}]


def test_a_rebuild_finds_every_row_there(ask, written):
    ask("post", written(episode("rebuilt")))
    ran = ask("db", "rebuild", "--json")
    assert (ran.code, ran.lines[0]["rows"]) == (0, 0)
    assert ran.lines[0]["present"] > 0


def test_the_calibration_tells_what_is_believed_of_each_check(ask):
    (told,) = ask("calibration", "--json").lines
    assert (told["policy"], told["stage"], told["thresholds"]["quarantine"]) == ("default@3", "raw", 0.8)
    one = told["checks"][0]["check"]
    (narrowed,) = ask("calibration", one, "--json").lines
    assert [check["check"] for check in narrowed["checks"]] == [one]
    shown = ask("calibration").out
    assert "quarantine from 0.8" in shown
    assert f"{one}@" in shown
    assert ask("calibration", "no/such").code == 2
