"""What README.md and CONTRIBUTING.md say is so."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer.main
import yaml

from inspector import gates
from inspector.check import Check
from inspector.cli.app import app
from inspector.local.declared import read_file
from inspector.probe.words import Outcome
from inspector.settings import Limits
from inspector.testing import envelope

ROOT = Path(__file__).parent.parent
PAGES = {name: (ROOT / name).read_text() for name in ("README.md", "CONTRIBUTING.md")}
README = PAGES["README.md"]
CODE = "\n".join(block or span for block, span in re.findall(r"```\w*\n(.*?)```|`([^`\n]+)`", "\n".join(PAGES.values()), re.S))
MAKEFILE = (ROOT / "Makefile").read_text()
COMMANDS = typer.main.get_command(app)


def _block(language: str, holding: str) -> str:
    (found,) = [text for text in re.findall(rf"```{language}\n(.*?)```", README, re.S) if holding in text]
    return found


# --- Python ----------------------------------------------------------------------------------------------------------


def test_the_trainers_loop_runs_and_keeps_everything_while_no_service_is_there(monkeypatch, tmp_path):
    rollouts = [envelope(id=f"a-{index}", group={"id": "g", "index": index, "size": 4}, reward=reward) for index, reward in enumerate((1.0, 0.0, None, 0.5))]
    seen, saved = [], []
    monkeypatch.setenv("INSPECTOR_KEY", "ins_nobody")
    monkeypatch.setenv("HOME", str(tmp_path))
    loop = _block("python", "Client(").replace("127.0.0.1:8642", "127.0.0.1:9")
    exec(loop, {"batches": lambda: [rollouts], "update": lambda *given: seen.append(given), "save": saved.append})
    assert seen == [(rollouts, [1.0, 0.0, None, 0.5], [True] * 4)]
    assert saved[0]["inspector"].keys() == {"epoch", "seq"}


def test_the_check_conforms():
    names: dict[str, object] = {}
    exec(_block("python", "@check("), names)
    check = names["verifier_outlasts_the_episode"]
    assert isinstance(check, Check)
    names["test_it_conforms"]()


# --- data ------------------------------------------------------------------------------------------------------------


def test_the_rollout_passes_the_door_and_reads_without_a_defect():
    line = _block("json", "run7-s12-g3-0").replace("\n", "").encode()
    assert gates.admit(line, Limits()).envelope.id == "run7-s12-g3-0"
    assert list(gates.read(line).defects) == []


def test_the_declaration_is_one(tmp_path):
    file = tmp_path / "acme.yaml"
    file.write_text(_block("yaml", "acme/terminal"))
    (declared,) = read_file(file)
    assert (declared.id, declared.version, declared.tasks["rotate-logs"].reference_tests) == ("acme/terminal", "2026.11.1", 4)


def test_the_recipes_for_a_probe_ask_for_what_there_is():
    (section,) = re.findall(r"^## Probing an environment\n(.*?)^## ", README, re.S | re.M)
    known = {option for parameter in COMMANDS.commands["probe"].params for option in parameter.opts}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", section)) <= known
    assert {word for words in re.findall(r"--fail-on ([a-z_,]+)", section) for word in words.split(",")} <= set(Outcome)
    steps = yaml.safe_load(_block("yaml", "runs-on"))["jobs"]["probe"]["steps"]
    (hook,) = yaml.safe_load(_block("yaml", "pre-push"))["repos"][0]["hooks"]
    for command in [hook["entry"], *(step["run"] for step in steps if "inspector probe" in step.get("run", ""))]:
        root, _, asked = command.partition("inspector ")
        assert root.startswith("sudo ")  # boxes need it
        assert shlex.split(asked)[:2] == ["probe", "tasks/"]


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\bmake ([a-z][a-z-]*)", CODE))))
def test_every_make_target_exists(target):
    assert re.search(rf"^{target}:", MAKEFILE, re.M)


@pytest.mark.parametrize("words", sorted(set(re.findall(r"\binspector ((?:[a-z]+ ?){1,2})", CODE))))
def test_every_command_exists(words):
    command = COMMANDS
    for word in words.split():
        if not hasattr(command, "commands"):
            break  # the rest are arguments
        command = command.commands[word]


@pytest.mark.parametrize("name", sorted(COMMANDS.commands))
def test_every_command_is_told_of(name):
    assert f"`inspector {name}" in README


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)", "\n".join(PAGES.values())))))
def test_every_link_leads_to_a_file_of_the_repository(link):
    assert (ROOT / link).exists()
