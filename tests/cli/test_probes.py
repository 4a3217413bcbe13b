"""`inspector environments register` and `inspector probes`, on the API; a prober's key stands for the sandbox worker."""

from __future__ import annotations

import json
import threading
import time

import pytest

from inspector.client import Api
from inspector.embedded import Stack


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    with Stack(tmp_path_factory.mktemp("probes"), parts={"postgres", "redis", "migrations", "keys", "api"}) as stack:
        yield stack


@pytest.fixture
def ask(run, stack):
    return lambda *words: run(*words, "--data", stack.data)


@pytest.fixture
def worker(stack):
    """Says what a sandbox worker would: `worker(tasks)` lists them, `worker()` reports one as sound."""
    with Api(stack.api_url, stack.keys["prober"]) as api:

        def answer(*tasks, outcomes=("weak_verifier",)):
            work = api.post("/v1/probe-work")
            evidence = [{"outcome": outcomes[0], "probe": "p", "claim": "A wrong answer\x1b[31m is paid.", "proof": "x"}]
            said = {"task": {"task": work["task"], "outcomes": outcomes, "evidence": evidence}}
            if work["task"] is None:
                said = {"listing": {"content_version": "c", "verifier_digest": "d", "tasks": tasks}}
            api.post(f"/v1/probe-work/{work['work']}/report", said, lease=work["lease"])
            return work

        yield answer


@pytest.fixture
def rows(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"task_id": "a", "prompt": "", "reference": "", "tests": []}\n')
    return file


def test_a_version_is_registered_once_and_probed(ask, worker, rows):
    place = ("--name", "acme/cli", "--version", "1")
    (made,) = ask("environments", "register", rows, *place, "--face", "rows", "--json").lines
    assert (made["entry"], made["face"]) == ("rows.jsonl", "rows")
    assert ask("environments", "register", rows, *place, "--face", "rows", "--json").lines == [made]
    (probe,) = ask("probes", "start", "acme/cli@1", "--priority", "live", "--cpu-s", "60", "--json").lines
    assert (probe["state"], probe["budget"]["cpu_s"]) == ("queued", 60.0)
    assert worker("a", "b")["package"]["sha256"] == made["artifact"]
    worker()
    shown = ask("probes", "show", probe["id"])
    assert "is running: 1 of 2 tasks" in shown.out
    assert "weak_verifier" in shown.out
    assert "\x1b" not in shown.out
    *tasks, last = ask("probes", "show", probe["id"], "--json").lines
    assert ([one["state"] for one in tasks], last["state"]) == (["done", "waiting"], "running")
    assert "is cancelled: 1 of 2 tasks" in ask("probes", "cancel", probe["id"]).out
    assert probe["id"] in ask("probes", "list").out
    assert ask("probes", "cancel", probe["id"]).code == 1


def test_a_reward_function_takes_its_rows_along(ask, worker, rows):
    code = rows.with_name("rewards.py")
    code.write_text("def exact(completions, answer): ...\n")
    where = f"{code}:exact"
    assert ask("environments", "register", where, "--name", "acme/fn", "--version", "1").code == 2
    (made,) = ask("environments", "register", where, "--name", "acme/fn", "--version", "1", "--dataset", rows, "--json").lines
    assert (made["entry"], made["dataset"]) == ("rewards.py:exact", "rows.jsonl")


@pytest.mark.parametrize(
    ("path", "rows_too", "face", "entry"),
    [
        ("reasoning-gym:chain_sum", False, "reasoning_gym", "chain_sum"),
        ("verifiers:acme/wordle", False, "verifiers", "acme/wordle"),
        ("https://verifier.example/verify", True, "http_verifier", "https://verifier.example/verify"),
    ],
)
def test_what_lies_elsewhere_is_registered_by_its_name(ask, rows, path, rows_too, face, entry):
    words = ("environments", "register", path, "--name", f"acme/{face}", "--version", "1", *(("--dataset", rows) if rows_too else ()))
    (made,) = ask(*words, "--json").lines
    assert (made["face"], made["entry"], made["dataset"]) == (face, entry, "rows.jsonl" if rows_too else None)
    assert (made["artifact"] is not None) is rows_too


def test_rows_are_asked_for_exactly_where_nothing_else_brings_them(ask, rows):
    served = ask("environments", "register", "http://verifier.example/verify", "--name", "a/b", "--version", "1")
    gym = ask("environments", "register", "reasoning-gym:chain_sum", "--name", "a/b", "--version", "1", "--dataset", rows)
    assert (served.code, gym.code) == (2, 2)


def test_links_are_named_and_left_out(ask, tmp_path):
    folder = tmp_path / "tasks"
    (folder / "one").mkdir(parents=True)
    (folder / "one" / "task.toml").write_text("")
    (folder / "away").symlink_to("/etc/passwd")
    ran = ask("environments", "register", folder, "--name", "acme/harbor", "--version", "1")
    assert (ran.code, "left out: tasks/away is a link" in ran.err) == (0, True)


def test_waiting_ends_with_the_probe_and_says_that_it_failed(ask, stack, rows):
    ask("environments", "register", rows, "--name", "acme/wait", "--version", "1")

    def fail():
        with Api(stack.api_url, stack.keys["prober"]) as api:
            while (work := api.post("/v1/probe-work")) is None:
                time.sleep(0.1)
            api.post(f"/v1/probe-work/{work['work']}/report", {"failure": "no rows"}, lease=work["lease"])

    thread = threading.Thread(target=fail)
    thread.start()
    ran = ask("probes", "start", "acme/wait@1", "--wait", "--json")
    thread.join()
    assert (ran.code, json.loads(ran.out)["note"]) == (1, "no rows")


@pytest.mark.parametrize("words", [("environments", "register", "/nothing", "--name", "a/b", "--version", "1"), ("probes", "start", "no-version")])
def test_wrong_usage_is_told(ask, words):
    assert ask(*words).code == 2
