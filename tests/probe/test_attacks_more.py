"""Attacks on the ladder by what tasks are made of: programs that are too deep, too long or hold numbers that cannot be shown, and lies in a box."""

from __future__ import annotations

import time

import pytest

from inspector.environments.protocol import Grade, Kind, Script, TaskUnderTest, Text
from inspector.probe import states, twin, variations, wrong
from inspector.probe.exploits import code
from inspector.probe.mutants import mutants
from inspector.probe.trials import Trials

DIGITS = f"0x{'f' * 6000}"  # which Python reads, but does not write in decimal
HOSTILE = {
    "deep sum": "def f(x):\n    return " + "1 + " * 900 + "x\n",
    "deep attribute": "def f(x):\n    y = x" + ".a" * 900 + "\n    return y\n",
    "deep list": "def f(x):\n    return " + "[" * 80 + "x" + "]" * 80 + "\n",
    "deep branches": "def f(x):\n    if x: return 1\n" + "".join(f"    elif x == {n}: return {n}\n" for n in range(400)),
    "long number": f"def f(x):\n    return {DIGITS}\n",
    "long text": "def f(x):\n" + "    x = x + 1\n    x = x < 2\n" * 8000 + "    return x\n",
    "nothing again": "def f(x):\n" + "    return None\n" * 600,
}


class Silent:
    """An environment that pays nothing; asked only where a probe would run something."""

    def __init__(self, evidence=""):
        self.evidence = evidence

    def grade(self, *_):
        return Grade(0.0, submission_evidence=self.evidence)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_program_that_is_too_much_is_probed_in_bounded_time(name):
    text = HOSTILE[name]
    for tests in ("assert f(1) == 1", f"assert f({DIGITS}) == {DIGITS}", f"assert f(1) == [{DIGITS}]", f"assert f({'-' * 900}1) == {'[' * 80 + ']' * 80}"):
        task = TaskUnderTest("t", Kind.CODE, "p", Text(text), entry_point="f", tests=(tests,))
        began = time.process_time()
        list(wrong.programs(Trials(Silent(), task), Text(text), 5))
        list(variations.attempts(task, Text(text)))
        list(code.attempts(task))
        twin.contradicted(task)
        assert time.process_time() - began < 30


def test_mutants_of_an_ordinary_program_are_still_many():
    assert len(mutants("def f(a, b):\n    if a > b:\n        return a - b * 2\n    return b + 1\n", "f", ["assert f(1, 2) == 3"], 0)) > 6


@pytest.mark.parametrize("lie", ["looked:" + "[" * 3900, "looked:" + "9" * 3900, 'looked:{"made": 1}', "looked:[]", 'looked:{"made": [[1]]}'])
def test_a_lie_about_what_was_seen_is_nothing_seen(lie):
    task = TaskUnderTest("t", Kind.STATE, "p", Script("true", solution=True))
    assert states.look(Trials(Silent(lie), task)) is None
