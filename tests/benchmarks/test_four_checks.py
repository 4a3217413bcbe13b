"""The product and its peers find the same, or their costs could not be compared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.metadata import distributions
from pathlib import Path

import numpy as np
import pytest

from benchmarks import stacks, workload
from benchmarks.checks import anomalies
from benchmarks.peers import measures
from benchmarks.shared import forest, references, texts
from benchmarks.shared.patterns import PATTERNS
from benchmarks.workload import Posted
from inspector import catalog, engine, gates
from inspector.check import Batch, Check
from inspector.embedded import redis as embedded_redis

HERE = Path(stacks.__file__).parent


@pytest.fixture(scope="module")
def posted() -> list[Posted]:
    return workload.short("t", 60)


@pytest.fixture(scope="module")
def checks() -> tuple[Check, ...]:
    """As an installation finds them."""
    [distribution] = distributions(path=[str(HERE / "site")])
    found = catalog.read(distribution.entry_points)
    assert not found.broken
    return tuple(found.checks.values())


def by_product(checks: tuple[Check, ...], posted: list[Posted]) -> dict[str, set[tuple[str, str]]]:
    assessed = engine.run(checks, [gates.read(one.line) for one in posted])
    return {one.id: {(f.check.partition("/")[2], f.message) for f in assessment.findings} for one, assessment in zip(posted, assessed, strict=True)}


def by_peers(posted: list[Posted]) -> dict[str, set[tuple[str, str]]]:
    bodies = [json.loads(one.line) for one in posted]
    found = {one.id: set(_of_text(texts.joined(body["trajectory"]))) for one, body in zip(posted, bodies, strict=True)}
    for one, anomaly in zip(posted, measures.anomalies([measures.numbers(body) for body in bodies]), strict=True):
        found[one.id] |= {("anomalies", "")} if anomaly.flagged else set()
    return found


def _of_text(text: str) -> Iterator[tuple[str, str]]:
    for name, check in measures.TEXT_CHECKS.items():
        judged = check(text)
        yield from ((name, detail) for detail in (judged.details or [""] if judged.flagged else []))


def test_peers_and_product_find_the_same_in_sixty_trajectories(checks: tuple[Check, ...], posted: list[Posted]) -> None:
    assert [check.name for check in checks] == ["bench/anomalies", "bench/compression", "bench/near_duplicates", "bench/signatures"]
    found = by_product(checks, posted)
    assert found == by_peers(posted)
    assert {id_ for id_, one in found.items() if one} == {one.id for one in posted if one.planted}
    assert {check for one in found.values() for check, _ in one} == {"anomalies", "compression", "near_duplicates", "signatures"}


@pytest.mark.slow
def test_running_stacks_find_the_same(posted: list[Posted], tmp_path: Path) -> None:
    if embedded_redis.binary() is None:
        pytest.skip("no Redis here")
    with ExitStack() as running:
        product = running.enter_context(stacks.product(tmp_path / "product"))
        peers = [running.enter_context(stacks.peer(name, tmp_path / name)) for name in ("good", "naive")]
        product.post(posted, batch=30, form="frames")
        for peer, batch, form in zip(peers, (30, 1), ("array", "single"), strict=True):
            peer.post(posted, batch=batch, form=form)
        for one in (product, *peers):
            one.settle(posted)
        found = product.findings(posted)
        assert [peer.findings(posted) for peer in peers] == [found, found]
        assert {id_ for id_, one in found.items() if one} == {one.id for one in posted if one.planted}


def test_a_matrix_of_a_block_holds_the_features_of_each(posted: list[Posted]) -> None:
    alone = np.array([measures.numbers(json.loads(one.line)) for one in posted])
    assert np.array_equal(anomalies.matrix(Batch([gates.read(one.line) for one in posted])), alone)


def test_flattened_trees_score_as_the_forest_does(posted: list[Posted]) -> None:
    rows = np.array([measures.numbers(json.loads(one.line)) for one in posted])
    assert np.abs(anomalies.score(rows) + forest.fitted().score_samples(rows)).max() <= 1e-12


def test_a_minimum_of_permutations_estimates_the_share_of_common_lines() -> None:
    text = references.texts()[0]
    lines = references.shingles(text)
    half = set(sorted(lines)[: len(lines) // 2])
    assert float((measures.sketch(lines) == measures.sketch(half)).mean()) == pytest.approx(0.5, abs=0.15)


def test_there_are_156_different_patterns_that_match_no_empty_text() -> None:
    assert len({pattern for _, pattern in PATTERNS}) == len({name for name, _ in PATTERNS}) == 156
    assert not [name for name, pattern in PATTERNS if re.search(pattern, "")]
