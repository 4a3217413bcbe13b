"""The ladder on benchmark rows: each outcome, and none that is not so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from inspector.environments.benchmark_rows import LIMITS, BenchmarkRows
from inspector.probe import causes, probe
from inspector.probe.words import Evidence, Hint, Outcome, TaskReport

Rows = Callable[..., BenchmarkRows]

TYPED = """
for given, wanted in [([3, 1, 2], 6), ([10, -4], 6), ([7], 7), ([2, 2, 2, 2], 8), ([0, 5, -9], -4)]:
    answer = total(given)
    assert type(answer) is int and answer == wanted
"""
SUM = {
    "task_id": "sum",
    "prompt": "Write total(numbers), the sum of a list of whole numbers.",
    "reference": "def total(numbers):\n    found = 0\n    for number in numbers:\n        found += number\n    return found\n",
    "tests": [TYPED],
    "entry_point": "total",
}
PLAIN = {**SUM, "task_id": "plain", "tests": ["assert total([3, 1, 2]) == 6", "assert total([10, -4]) == 6", "assert total([7]) == 7"]}


def only(environment: BenchmarkRows, **options: Any) -> TaskReport:
    """The report of an environment's one task."""
    (report,) = probe(environment, **options).tasks
    return report


def of(report: TaskReport, outcome: Outcome) -> Evidence:
    """The one evidence of an outcome."""
    (found,) = [each for each in report.evidence if each.outcome is outcome]
    return found


def test_a_task_that_compares_types_and_values_is_sound(rows: Rows) -> None:
    report = only(rows(SUM))
    assert report.outcomes == (Outcome.SOUND,)
    assert not report.evidence
    assert any("rarer than 45%" in note for note in report.notes)
    assert report.cpu_s > 0
    assert report.reproduce == "inspector probe rows --task sum --seed 0"


def test_an_object_that_equals_everything_is_the_one_evidence_against_plain_comparisons(rows: Rows) -> None:
    report = only(rows(PLAIN))
    assert report.outcomes == (Outcome.EXPLOITABLE,)
    found = of(report, Outcome.EXPLOITABLE)
    assert found.probe == "exploit/always_equal"
    assert "def __eq__" in found.proof
    assert "paid 3 of 3 times; without its exploit 0 of 2" in found.proof


@pytest.mark.parametrize(
    ("reference", "word"),
    [("def total(numbers):\n    return 41\n", "AssertionError"), ("def total(numbers):\n    raise KeyError(numbers)\n", "KeyError")],
)
def test_a_reference_that_its_verifier_refuses_twice_is_unsolvable(rows: Rows, reference: str, word: str) -> None:
    report = only(rows({**SUM, "reference": reference}))
    assert report.outcomes == (Outcome.UNSOLVABLE,)
    assert word in of(report, Outcome.UNSOLVABLE).detail
    assert report.probabilities["unsolvable"] > 0.8


def test_a_reference_that_never_ends_is_unsolvable_by_timeout(rows: Rows) -> None:
    report = only(rows({**SUM, "reference": "def total(numbers):\n    while True:\n        pass\n"}, cpu_s=1.0))
    assert report.outcomes == (Outcome.UNSOLVABLE,)
    assert of(report, Outcome.UNSOLVABLE).proof.startswith("timeout")


def test_tests_that_hold_for_a_stub_are_trivially_passable(rows: Rows) -> None:
    report = only(rows({**SUM, "tests": ["assert callable(total)"]}))
    assert Outcome.TRIVIALLY_PASSABLE in report.outcomes
    assert Outcome.EXPLOITABLE not in report.outcomes
    assert of(report, Outcome.TRIVIALLY_PASSABLE).probe == "nothing/no_op"


def test_a_wrong_program_that_is_paid_shows_a_weak_verifier_with_an_input(rows: Rows) -> None:
    report = only(rows({**SUM, "tests": ["assert type(total([5])) is int and total([5]) == 5", "assert type(total([2])) is int and total([2]) == 2"]}))
    assert Outcome.WEAK_VERIFIER not in report.outcomes or "answers otherwise on" in of(report, Outcome.WEAK_VERIFIER).claim
    wide = {**SUM, "tests": ["answer = total([2, 2, 1])", "assert isinstance(answer, int) and type(answer) is int and total([4, 3, 8]) > 0"]}
    weak = only(rows(wide))
    assert weak.outcomes == (Outcome.WEAK_VERIFIER,)
    assert "answers otherwise on" in of(weak, Outcome.WEAK_VERIFIER).claim


def test_a_verifier_that_refuses_other_names_for_locals_is_false_rejecting(rows: Rows) -> None:
    named = "assert 'found' in total.__code__.co_varnames and type(total([1, 2])) is int and total([1, 2]) == 3"
    report = only(rows({**SUM, "tests": [TYPED, named]}))
    assert report.outcomes == (Outcome.FALSE_REJECTING,)
    assert of(report, Outcome.FALSE_REJECTING).probe == "variation/renamed"


def test_a_verifier_that_refuses_by_chance_is_flaky_and_nothing_else(rows: Rows) -> None:
    report = only(rows({**PLAIN, "tests": ["assert hash('by chance') % 2", *PLAIN["tests"]]}))
    assert report.outcomes == (Outcome.FLAKY,)
    assert 0.05 < report.probabilities["flaky"] < 0.6


def test_a_verifier_that_pays_all_by_chance_is_never_called_exploitable(rows: Rows) -> None:
    report = only(rows({**SUM, "reference": None, "tests": ["import os", "assert os.urandom(1)[0] < 128"]}), seed=3)
    assert Outcome.EXPLOITABLE not in report.outcomes
    assert {Outcome.FLAKY, Outcome.TRIVIALLY_PASSABLE, Outcome.NOT_ASSESSED} & set(report.outcomes)


def test_tests_that_compare_with_nothing_are_found_by_the_twin(rows: Rows) -> None:
    vacuous = ["assert (total([3, 1, 2]) == 6, 'sum')", "assert type(total([2, 3])) is int"]
    report = only(rows({**SUM, "tests": vacuous}))
    assert report.outcomes == (Outcome.WEAK_VERIFIER,)
    assert "twin/contradicted_twin" in {each.probe for each in report.evidence}


def test_without_a_reference_solvability_is_not_assessed_and_exploits_are_still_found(rows: Rows) -> None:
    report = only(rows({**PLAIN, "reference": None}))
    assert report.outcomes == (Outcome.EXPLOITABLE, Outcome.NOT_ASSESSED)
    assert any("No reference" in note for note in report.notes)


def test_a_reference_that_lacks_a_module_of_this_machine_is_not_reproduced(rows: Rows) -> None:
    report = only(rows({**SUM, "reference": f"import nowhere_to_be_found\n{SUM['reference']}"}))
    assert report.outcomes == (Outcome.NOT_REPRODUCED,)
    assert any("nowhere_to_be_found" in note for note in report.notes)


def test_a_reference_that_needs_more_memory_than_we_give_is_not_reproduced(rows: Rows) -> None:
    report = only(rows({**SUM, "reference": "def total(numbers):\n    return len(bytearray(200 << 20))\n"}, limits=replace(LIMITS, memory_bytes=100 << 20)))
    assert report.outcomes == (Outcome.NOT_REPRODUCED,)
    assert any("out of memory" in run.detail for run in report.runs)


def test_that_programs_share_a_process_with_their_tests_is_told_once_where_anything_is_paid(rows: Rows) -> None:
    report = probe(rows(*[{**SUM, "task_id": name, "reference": None, "tests": ["True"]} for name in "ab"]))
    assert report.notes == (causes.ONE_PROCESS,)
    assert not any(causes.ONE_PROCESS in task.notes for task in report.tasks)
    assert not probe(rows({**SUM, "reference": None, "tests": ["assert False"]})).notes


def test_where_every_task_fails_with_one_error_our_own_set_up_is_the_first_suspect(rows: Rows) -> None:
    broken = [{**SUM, "task_id": str(number), "reference": f"import sys\nassert_ = sys.no_such_thing\n{SUM['reference']}"} for number in range(3)]
    report = probe(rows(*broken))
    assert {task.outcomes for task in report.tasks} == {(Outcome.NOT_REPRODUCED,)}
    assert "our own set-up is the first suspect" in report.notes[0]
    again = probe(rows(*broken, {**SUM, "task_id": "good"}))
    assert [task.outcomes for task in again.tasks] == [(Outcome.UNSOLVABLE,)] * 3 + [(Outcome.SOUND,)]
    assert again.notes == (causes.ONE_PROCESS,)


def test_a_table_of_the_shown_cases_is_weak_and_of_hidden_ones_is_only_told(rows: Rows) -> None:
    cases = ["assert total([3, 1, 2]) == 6", "assert total([10, 3]) == 13", "assert total([1, 1, 9, 40]) == 51"]
    hidden = only(rows({**SUM, "tests": cases}))
    assert Outcome.WEAK_VERIFIER not in hidden.outcomes
    assert any("wrong/hollow" in note for note in hidden.notes)
    shown = only(rows({**SUM, "tests": cases, "prompt": f"{SUM['prompt']} As in: {'; '.join(cases)}"}))
    assert of(shown, Outcome.WEAK_VERIFIER).probe == "wrong/hollow"


def test_a_hint_comes_back_with_what_its_probe_found(rows: Rows) -> None:
    def hint(tested_by: str) -> Hint:
        return Hint(rule="a-rule", path="rows.jsonl", line=1, message="seen", tested_by=tested_by)

    report = only(rows(PLAIN), hints={"plain": [hint("always_equal"), hint("early_exit"), hint("rollouts")]})
    assert [each.confirmed for each in report.hints] == [True, False, None]


def test_progress_is_told_and_only_the_named_tasks_are_probed_in_their_order(rows: Rows) -> None:
    told: list[tuple[str, int, int]] = []
    environment = rows(*[{**SUM, "task_id": name, "reference": None, "tests": ["assert total([1]) == 2"]} for name in "abc"])
    report = probe(environment, only={"c", "a"}, parallel=2, tell=lambda task, done, of: told.append((task.task, done, of)))
    assert [task.task for task in report.tasks] == ["a", "c"]
    assert sorted(task for task, _, _ in told) == ["a", "c"]
    assert [(done, of) for _, done, of in told] == [(1, 2), (2, 2)]
