"""A glance at a shell line never says that it cannot do what the whole reading finds in it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inspector import catalog, gates
from inspector.actions import CHANGES, Kind, actions
from inspector.actions import calls as known
from inspector.actions.calls import line_of
from inspector.actions.effects import _EFFECTS, of_shell
from inspector.actions.glance import may_change, may_hold
from inspector.actions.words import Action, Passage
from inspector.testing import trajectory
from inspector.trajectory import ToolCall
from inspector.verdict import Span

names = st.sampled_from([*_EFFECTS, "bash", "sh", "python3", "python3.11", "ipython", "eval", "patch", "cat", "grep", "ls", "env", "sudo", "cd", "/bin/rm"])
options = st.sampled_from(["-i", "-c", "-lc", "-n", "-ni", "--in-place", "-delete", "-exec", "-m", "-", "--", "rm", "checkout", "-e", "A=1", "x c", "git"])
between = st.sampled_from(
    [" ", "  ", "\t", "\n", "\\\n", "; ", " && ", " | ", " || true", "(", ")", "$(", "`", " > ", " 2>&1 ", ">/dev/null ", " << E\n", "\nE\n", "{", "}"]
)
quotes = st.sampled_from(
    ["'", '"', "\\", "$'", '$"', "''", '""', "é", "$X", "/", ".", "_", "-", "#", "<", "<<<", "a.py", "open('q', 'w')", "os.system('rm x')"]
)
lines = st.lists(st.one_of(names, options, between, quotes, between), max_size=14).map("".join)


def read(line):
    return [found for found in of_shell(Passage(line, Span(step=0, field="message"))) if isinstance(found, Action)]


@settings(max_examples=600, deadline=None)
@given(lines)
@example("'\"/'\"rm x y")
@example("sed '-n x i' a")
@example("bash '- c' 'rm x'")
@example("r\\\nm x")
@example("$'r'm x")
@example("ls >/dev/null'x'")
def test_a_line_that_is_not_parsed_changes_nothing(line):
    if not may_change(line):
        assert [found for found in read(line) if found.kind in CHANGES] == []


@settings(max_examples=600, deadline=None)
@given(lines)
@example("python3 - <<'E'\nopen('.g' + 'it/packed-refs')\nE\n")
@example("'gi't log --all")
def test_a_line_that_cannot_hold_a_word_has_no_action_with_it(line):
    if not may_hold(line, "git"):
        assert [found for found in read(line) if "git" in found.path or "git" in " ".join(found.argv)] == []


@given(st.lists(lines, max_size=4))
def test_lines_together_are_no_quieter_than_each_alone(some):
    together = "\n".join(some)
    assert may_change(together) or not any(may_change(line) for line in some)
    assert may_hold(together, "git") or not any(may_hold(line, "git") for line in some)


@pytest.mark.parametrize(
    "line", ["ls -l src", "cat a.py | head -5 2>/dev/null", "grep -rn 'x y' . 2>&1", "sed -n '1,20p' a.py", "python -m pytest -q", "git log", "find . -name x"]
)
def test_a_line_that_only_looks_is_not_parsed(line):
    assert not may_change(line)


def test_what_stands_beside_a_line_decides_nothing():
    groups = (known._LINES, known._CODE, known._PATHS, known._CONTENTS, known._OLD, known._NEW, known._PATCHES, ("edits", "language", "lang"))
    assert not known._BESIDE & {name for group in groups for name in group}


calls = st.dictionaries(
    st.sampled_from([*known._BESIDE, *known._SURELY, "path", "code", "input"]), st.sampled_from(["ls", "rm x", "", 5, None, ["rm"]]), max_size=3
)


@given(calls, st.sampled_from(["bash", "Bash", "python", "mcp__x__run", "execute_ipython_cell", "finish"]))
def test_a_line_alone_is_read_as_a_line(arguments, tool):
    line = line_of(ToolCall(tool_call_id="c", function_name=tool, arguments=arguments))
    if line is not None:
        call = {"tool_call_id": "c", "function_name": tool, "arguments": arguments}
        done = actions(trajectory(steps=[{"step_id": 1, "source": "agent", "message": "", "tool_calls": [call]}])).done
        assert [(found.kind, found.argv) for found in done] == [(found.kind, found.argv) for found in read(line)]


EXAMPLES = [shown for check in catalog.load().checks.values() for shown in (*check.clean, *check.flagged)]


def test_asking_for_some_actions_gives_those_of_all():
    for shown in EXAMPLES:
        for posted in shown.posted:
            fresh, whole = (gates.read(line_of_posted(posted)) for _ in range(2))
            assert list(actions(fresh).of(*CHANGES)) == [found for found in actions(whole).done if found.kind in CHANGES]
            some = list(actions(fresh).of(Kind.COMMAND, Kind.READ, word="git"))
            told = [found for found in actions(whole).done if found.kind in (Kind.COMMAND, Kind.READ)]
            assert [found for found in told if "git" in found.path or "git" in " ".join(found.argv)] == [
                found for found in some if "git" in found.path or "git" in " ".join(found.argv)
            ]


def line_of_posted(posted):
    return msgspec.json.encode(posted)
