"""Tool calls of any harness become the same few actions, and every action points at where it stands."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.actions import Kind, actions
from inspector.check import misfit, text_at
from inspector.testing import odd_trajectories, trajectory
from inspector.verdict import Finding


def episode(*calls, message="", answered=True):
    made = [{"tool_call_id": f"c{at}", "function_name": name, "arguments": arguments} for at, (name, arguments) in enumerate(calls)]
    steps = [{"step_id": 1, "source": "agent", "message": message, **({"tool_calls": made} if made else {})}]
    return trajectory(steps=steps + [{"step_id": 2, "source": "user", "message": "(what came back)"}] * answered)


def did(*calls, **told):
    """(kind, path or words, text) of every action, the commands that only carry others left out."""
    found = actions(episode(*calls, **told)).done
    return [(str(action.kind), action.path or action.argv, action.text if action.kind in (Kind.WRITE, Kind.EDIT) else "") for action in found]


def changes(command):
    return [(str(action.kind), action.path, action.text) for action in actions(episode(("bash", {"command": command}))).of(Kind.WRITE, Kind.EDIT, Kind.DELETE)]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo hi > a.txt", [("write", "a.txt", "hi")]),
        ("cat > a.py <<'EOF'\nx = 1\nEOF\n", [("write", "a.py", "x = 1\n")]),
        ("cat <<X | tee b\nbody\nX\n", [("write", "b", "body\n")]),
        ("echo x | sudo tee -a /etc/hosts", [("write", "/etc/hosts", "x")]),
        ("cd app && rm -rf tests 2>/dev/null", [("delete", "app/tests", "")]),
        ("sed -i 's/1/2/' 'a b.py' c.py", [("edit", "a b.py", "s/1/2/"), ("edit", "c.py", "s/1/2/")]),
        ("sed -n '1,20p' a.py > /dev/null", []),
        ("mv a.py b.py", [("delete", "a.py", ""), ("write", "b.py", "")]),
        ("cp a.py b.py dest/", [("write", "dest/a.py", ""), ("write", "dest/b.py", "")]),
        ("git rm -q x; git checkout -- y", [("delete", "x", ""), ("write", "y", "")]),
        ("bash -lc 'rm x'", [("delete", "x", "")]),
        ("FOO=1 env BAR=2 timeout 5 rm x", [("delete", "x", "")]),
        ("for f in a b; do rm $f; done", [("delete", "$f", "")]),
        ("python -c \"import os; os.remove('x')\"", [("delete", "x", "")]),
        ("python3 - <<'E'\nfrom pathlib import Path\nPath('a', 'b').write_text('c')\nE\n", [("write", "a/b", "c")]),
        ("python3 - <<'E'\nname = 'é'\nwith open(f'{name}.txt', mode='a') as f:\n    f.write('c')\nE\n", [("write", "é.txt", "c")]),
        ("python3 -c \"import subprocess as s, os; os.system('rm x')\"", [("delete", "x", "")]),
        ("patch -p1 <<'E'\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\nE\n", [("edit", "x.py", "b\n")]),
        ("pytest 2>&1 | tail -5", []),
        ("rm > log a 2>/dev/null b", [("write", "log", ""), ("delete", "a", ""), ("delete", "b", "")]),
    ],
)
def test_what_a_shell_line_changes(command, expected):
    assert changes(command) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (("str_replace_editor", {"command": "create", "path": "/a", "file_text": "x"}), [("write", "/a", "x")]),
        (("str_replace_editor", {"command": "str_replace", "path": "/a", "old_str": "x", "new_str": "y"}), [("edit", "/a", "y")]),
        (("str_replace_editor", {"command": "view", "path": "/a"}), [("read", "/a", "")]),
        (("Write", {"file_path": "a", "content": "x"}), [("write", "a", "x")]),
        (("MultiEdit", {"file_path": "a", "edits": [{"old_string": "x", "new_string": "y"}]}), [("edit", "a", "y")]),
        (("mcp__files__delete_file", {"path": "a"}), [("delete", "a", "")]),
        (("apply_patch", {"input": "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"}), [("write", "a", "x\n")]),
        (("shell", {"command": ["bash", "-lc", "rm a"]}), [("command", ("bash", "-lc", "rm a"), ""), ("command", ("rm", "a"), ""), ("delete", "a", "")]),
        (("terminal", {"commands": [{"keystrokes": "rm a\n", "duration": 1}]}), [("command", ("rm", "a"), ""), ("delete", "a", "")]),
        (("bash", {"command": "edit 1:2\nx\nend_of_edit"}), [("edit", (), "x")]),
        (("execute_ipython_cell", {"code": "!rm a"}), [("code", (), ""), ("command", ("rm", "a"), ""), ("delete", "a", "")]),
        (("send_email", {"to": "a", "text": "rm b"}), [("tool", "send_email", "")]),
    ],
)
def test_what_a_tool_call_does(call, expected):
    assert did(call) == expected


def test_swe_agents_edit_speaks_of_the_file_that_was_opened():
    assert ("edit", "a.py", "x") in did(("bash", {"command": "open a.py 10"}), ("bash", {"command": "edit 1:2\nx\nend_of_edit"}))


def test_blocks_are_run_only_where_nobody_calls_tools_and_something_comes_back():
    block = "So:\n```bash\nrm a\n```\n"
    assert ("delete", "a", "") in did(message=block)
    assert did(message=block, answered=False) == []
    assert did(("send_email", {"to": "a"}), message=block) == [("tool", "send_email", "")]


def test_failures_that_are_thrown_away_are_told():
    found = actions(episode(("bash", {"command": "pytest -q || true"})))
    assert [action.swallowed for action in found.done] == [True, False]


def test_what_cannot_be_parsed_stays_text_and_is_told():
    for call in (("bash", {"command": "))) ((( '"}), ("bash", {"command": "x" * (1 << 18)}), ("python", {"code": "def ("})):
        found = actions(episode(call))
        assert found.unread
        assert found.done[0].text


@pytest.mark.parametrize("command", ['"$(' * 30_000, "case x in " * 10_000, "(" * 100_000, "{ " * 50_000, "<<A " * 20_000])
def test_hostile_shell_is_bounded(command):
    found = actions(episode(("bash", {"command": command})))
    assert found.unread


@pytest.mark.parametrize("code", ["(" * 100_000, "-" * 100_000 + "1", "a" + ".b" * 50_000, "x = '\\d'", "[" * 500 + "]" * 500])
def test_hostile_python_is_bounded(code):
    actions(episode(("python", {"code": code})))


def test_copied_context_is_no_action():
    call = {"tool_call_id": "c", "function_name": "bash", "arguments": {"command": "rm a"}}
    steps = [{"step_id": 1, "source": "agent", "message": "", "tool_calls": [call], "is_copied_context": True}]
    assert actions(trajectory(steps=steps)).done == ()


def test_actions_are_read_once():
    one = episode(("bash", {"command": "ls"}))
    assert actions(one) is actions(one)


pieces = [
    *("rm ", "'a b' ", '"x$Y" ', "> f ", ">> g\n", "| tee h ", "cat <<E\nbody é\nE\n", "; ", "&& ", "|| true\n", "bash -c 'rm z' "),
    *("python -c \"open('q','w')\" ", "😀 ", "$(ls) ", "(", ")", "\\\n"),
]


def placed(subject):
    return [fault for action in actions(subject).done if (fault := misfit(Finding(message="x", spans=(action.span,)), subject))]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(pieces), max_size=12).map("".join), st.sampled_from(["bash", "python", "terminal"]))
def test_every_action_points_at_what_is_there(text, tool):
    subject = episode((tool, {"command": text}))
    assert placed(subject) == []
    for action in actions(subject).done:
        assert text_at(subject, action.span)[action.span.start : action.span.end] == action.span.quote


@pytest.mark.parametrize("name", odd_trajectories())
def test_odd_records_have_actions_that_are_there(name):
    assert placed(odd_trajectories()[name]) == []


def test_one_trajectory_cannot_take_all_the_time():
    slow = episode(*[("bash", {"command": '"$(' * 40_000})] * 60, *[("python", {"code": "x = 1\n" * 10_000})] * 20)
    reasons = {one.reason for one in actions(slow).unread}
    assert any("used up before" in reason for reason in reasons)
    assert any("characters of programs" in reason for reason in reasons)
    assert actions(episode(("bash", {"command": "ls"}), ("python", {"code": "x = 1"}))).unread == ()
