"""The demo tells a wrong verdict, a missing one, one too many, and a check that has nothing to show."""

from inspector.demo.comparison import Seen, compare, idle

FOUND = frozenset({"builtin/paid_although_tests_failed"})
RIGHT = Seen("quarantine", "exclude", "verifier_defect", FOUND)
ID = "tern-7-s12-fix-nginx-2"


def fault(seen):
    return {row.id: row.fault for row in compare({ID: seen})}[ID]


def test_what_differs_is_named():
    assert fault(RIGHT) == ""
    assert fault(RIGHT._replace(verdict="flag", action="keep")) == "verdict, action"
    assert fault(RIGHT._replace(cause=None)) == "cause"
    assert fault(RIGHT._replace(checks=frozenset({"builtin/other"}))) == "check"


def test_one_too_few_and_one_too_many_are_faults():
    rows = {row.id: row.fault for row in compare({ID: RIGHT, "stranger": RIGHT})}
    assert rows["stranger"] == "not expected"
    assert rows["tern-7-s12-fix-nginx-0"] == "no verdict"


def test_a_check_that_found_nothing_is_told():
    assert "builtin/paid_although_tests_failed" not in idle([RIGHT])
    assert "builtin/ending_contradicts_itself" in idle([RIGHT])
