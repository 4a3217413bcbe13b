"""The ladder on public programming tasks with known answers, where they are at hand."""

from __future__ import annotations

import ast
import csv
import gzip
import json
import os
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from inspector.environments.benchmark_rows import BenchmarkRows
from inspector.environments.rows import Row
from inspector.probe import causes, probe
from inspector.probe.words import Family, Outcome, TaskReport
from inspector.sandbox.protocol import Backend

QUICK = 6  # a full sample takes a minute; all of them are in the long proofs
SEED = 20


@pytest.fixture(scope="module")
def folder() -> Path:
    public = os.environ.get("INSPECTOR_PUBLIC_DATA")
    if not public or not (Path(public) / "mbpp").is_dir():
        pytest.skip("INSPECTOR_PUBLIC_DATA is not set: no folder with mbpp to read")
    return Path(public) / "mbpp"


@pytest.fixture(scope="module")
def rows(folder: Path) -> Sequence[Row]:
    with gzip.open(folder / "mbpp.jsonl.gz", "rt") as file:
        return [Row(f"mbpp:{number}", json.loads(line)) for number, line in enumerate(file, 1)]


@pytest.fixture(scope="module")
def labels(folder: Path) -> dict[str, dict[str, str]]:
    with (folder / "labels.csv").open() as file:
        return {row["task_id"]: row for row in csv.DictReader(file)}


def check_against(labels: dict[str, dict[str, str]], tasks: Sequence[TaskReport]) -> None:
    """No false alarm of reference and no-op, and the always-equal object wherever it is known to pass."""
    told = {task.task: set(task.outcomes) for task in tasks}
    assert not [id for id, outcomes in told.items() if outcomes & {Outcome.UNSOLVABLE, Outcome.TRIVIALLY_PASSABLE, Outcome.FLAKY, Outcome.NOT_REPRODUCED}]
    found = {task.task for task in tasks if any("always_equal" in probe for each in task.evidence for probe in (each.probe, *each.also))}
    assert {id for id in told if labels[id]["always_eq"] == "PASS"} <= found


def test_a_sample_of_public_rows_has_no_false_alarm(rows: Sequence[Row], labels: dict[str, dict[str, str]], backend: Backend) -> None:
    chosen = random.Random(SEED).sample(list(rows), QUICK)
    check_against(labels, probe(BenchmarkRows("mbpp", chosen, backend), parallel=2).tasks)


@pytest.mark.slow
def test_public_rows_have_no_false_alarm(rows: Sequence[Row], labels: dict[str, dict[str, str]], backend: Backend) -> None:
    report = probe(BenchmarkRows("mbpp", rows, backend), parallel=2)
    check_against(labels, report.tasks)
    print(report.counts(), f"{report.cpu_s / len(rows):.2f} s of processor time a task")


def seeded(row: Row, kind: str) -> Row:
    """The row with one fault in its reference's called function."""
    bodies = {"value": "return {'no such': 'value'}", "raise": "raise RuntimeError('seeded')", "loop": "while True: pass"}
    tree = ast.parse(row.value["code"].replace("\r\n", "\n"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            node.body = ast.parse(f"if True:\n    {bodies[kind]}").body
    return replace(row, value={**row.value, "code": ast.unparse(ast.fix_missing_locations(tree))})


@pytest.mark.slow
def test_each_seeded_fault_that_its_tests_refuse_is_unsolvable_and_no_other(rows: Sequence[Row], backend: Backend) -> None:
    kinds = dict(zip((str(row.value["task_id"]) for row in rows), ("value", "raise", "loop") * len(rows), strict=False))
    faulty = [seeded(row, kinds[str(row.value["task_id"])]) for row in rows]
    environment = BenchmarkRows("mbpp", faulty, backend, cpu_s=2.0)
    refused = {task.id for task in environment.tasks() if task.reference and (environment.grade(task, task.reference).reward or 0.0) < 1.0}
    report = probe(environment, parallel=2)
    assert {task.task for task in report.tasks if Outcome.UNSOLVABLE in task.outcomes} == refused
    for task in report.tasks:
        for each in task.evidence:
            if each.outcome is Outcome.UNSOLVABLE:
                assert each.proof.startswith("timeout") == (kinds[task.task] == "loop"), task
    assert report.notes == (causes.ONE_PROCESS,)


def test_the_probes_say_what_they_cost(rows: Sequence[Row], backend: Backend) -> None:
    (task,) = probe(BenchmarkRows("mbpp", rows[:1], backend)).tasks
    assert task.cpu_s == pytest.approx(sum(run.cpu_s for run in task.runs), abs=0.01)
    assert {run.family for run in task.runs} >= {Family.REFERENCE, Family.NOTHING, Family.WRONG, Family.VARIATION, Family.EXPLOIT, Family.TWIN}
