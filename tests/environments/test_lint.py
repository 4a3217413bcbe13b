"""Every rule finds its bad example and leaves its good one alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inspector.environments.lint import RULES, lint
from inspector.environments.protocol import Unreadable

EXAMPLES = Path(__file__).parent / "lint"
NAMES = [rule.name for rule in RULES]


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_finds_its_bad_example(name):
    hints = [hint for hint in lint(EXAMPLES / name / "bad") if hint.rule == name]
    assert hints
    assert all(hint.message and hint.proved_by and hint.line >= 1 for hint in hints)


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_leaves_its_good_example_alone(name):
    assert [hint for hint in lint(EXAMPLES / name / "good") if hint.rule == name] == []


def test_every_rule_has_a_name_of_its_own_and_says_what_it_suspects():
    assert len(set(NAMES)) == len(NAMES) == len(list(EXAMPLES.iterdir())) >= 25
    assert all(rule.meaning for rule in RULES)


def test_a_hint_names_its_place():
    (hint,) = [hint for hint in lint(EXAMPLES / "plantable-conftest" / "bad") if hint.rule == "plantable-conftest"]
    assert (hint.path, hint.line, hint.proved_by) == ("tests/test.sh", 4, "exploit/conftest_hook")


def test_hostile_files_give_no_hint_and_no_crash(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_deep.py").write_text("(" * 50_000)
    (tmp_path / "tests" / "test_bytes.py").write_bytes(b"\xff\xfe\x00def test(): assert True")
    (tmp_path / "tests" / "test_minus.py").write_text("x = " + "-" * 20_000 + "1")
    (tmp_path / "task.toml").write_bytes(b"a = \xff")
    (tmp_path / "instruction.md").write_text("x" * (2 << 20))
    (tmp_path / "environment").mkdir()
    (tmp_path / "environment" / "Dockerfile").write_text("FROM x\nRUN <<END\nnever")
    os.symlink("/etc/passwd", tmp_path / "tests" / "test_link.py")
    os.mkfifo(tmp_path / "tests" / "test_pipe.py")
    assert {hint.rule for hint in lint(tmp_path)} <= set(NAMES)


def test_a_bottomless_folder_is_unreadable(tmp_path):
    at = tmp_path
    for _ in range(60):
        at /= "d"
    at.mkdir(parents=True)
    with pytest.raises(Unreadable, match="deeper"):
        lint(tmp_path)
