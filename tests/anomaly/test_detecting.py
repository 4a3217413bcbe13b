"""The laws of scales, forests, p-values and models."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.ensemble import IsolationForest

from inspector.anomaly import conformal, learning, model
from inspector.anomaly.arrays import BadArrays, packed, unpacked
from inspector.anomaly.features import COUNT, FLOORS
from inspector.anomaly.fitting import fit
from inspector.anomaly.forest import flattened
from inspector.anomaly.learning import Window, learn
from inspector.anomaly.oddness import Oddness
from inspector.anomaly.scaling import CLIP, scales

seeds = st.integers(0, 2**32 - 1)


# --- forests ---------------------------------------------------------------------------------------------------------


@settings(max_examples=12, deadline=None)
@given(seeds, st.integers(1, 400), st.integers(1, 12), st.booleans())
def test_a_forest_scores_as_sklearn_does(seed, count, width, coarse):
    random = np.random.default_rng(seed)
    rows = random.normal(size=(count, width))
    rows = (np.round(rows) if coarse else rows).astype(np.float32)  # equal values make shallow trees
    fitted = IsolationForest(n_estimators=25, max_samples=min(256, count), random_state=seed % 1000).fit(rows)
    asked = np.concatenate([rows, (random.normal(size=(30, width)) * 4).astype(np.float32)])
    forest = flattened([estimator.tree_ for estimator in fitted.estimators_], fitted.max_samples_)
    if count > 1:
        assert np.abs(forest.score(asked) + fitted.score_samples(asked)).max() < 1e-9


def test_who_scores_never_loads_sklearn():
    code = (
        "import sys, inspector.worker.tasks, inspector.learning, checks.anomaly\n"
        "from inspector.check import Batch\nfrom inspector.testing import trajectory\n"
        "assert list(checks.anomaly.unlike_its_environment(Batch([trajectory()]), [checks.anomaly._KNOWN]))\n"
        "sys.exit('sklearn' in sys.modules or 'scipy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0


# --- scales ----------------------------------------------------------------------------------------------------------


def test_where_environments_lie_far_apart_each_keeps_its_own_place():
    random = np.random.default_rng(1)
    environments = np.repeat(np.arange(8), [200] * 7 + [12])
    centres = np.arange(8.0)[:, None] * 50.0
    rows = random.normal(size=(len(environments), 3)) + centres[environments]
    found = scales(rows, environments, 8, np.full(3, 0.1))
    assert np.abs(found.location - centres).max() < 2.0  # with the project's weight as in the formula it would be 100 off
    assert np.abs(found.spread - 1.0).max() < 0.5


def test_what_is_hardly_known_is_drawn_towards_the_project():
    random = np.random.default_rng(2)
    environments = np.repeat(np.arange(5), [300] * 4 + [3])
    rows = random.normal(size=(len(environments), 1))
    rows[-3:] *= 0.01
    found = scales(rows, environments, 5, np.full(1, 0.001))
    assert found.spread[4, 0] > 0.5


@given(seeds, st.floats(-50, 50), st.floats(0.5, 20))
def test_another_unit_changes_nothing(seed, shift, factor):
    random = np.random.default_rng(seed)
    rows, environments = random.normal(size=(90, 2)), random.integers(0, 4, 90)
    floors = np.full(2, 1e-9)
    as_it_is = scales(rows, environments, 4, floors).standardised(rows, environments)
    moved = rows * factor + shift
    assert np.allclose(scales(moved, environments, 4, floors).standardised(moved, environments), as_it_is, atol=1e-3)


rows_with_gaps = hnp.arrays(np.float64, st.tuples(st.integers(1, 30), st.just(4)), elements=st.floats(-1e3, 1e3) | st.just(np.nan))


@given(rows_with_gaps, st.integers(1, 5))
def test_what_was_not_recorded_is_as_usual(rows, count):
    environments = np.arange(len(rows)) % count
    z = scales(rows, environments, count, np.full(4, 0.1)).standardised(rows, environments)
    assert np.isfinite(z).all()
    assert (np.abs(z) <= CLIP).all()
    assert (z[np.isnan(rows)] == 0).all()


# --- p-values --------------------------------------------------------------------------------------------------------

several = st.lists(st.floats(0.001, 1.0), min_size=1, max_size=60)


def rejected(p_values, rate):
    """Benjamini and Hochberg's rule, as it is written."""
    ordered = sorted(p_values)
    ranks = [rank for rank, p in enumerate(ordered, start=1) if p <= rate * rank / len(ordered)]
    return {p for p in p_values if ranks and p <= ordered[ranks[-1] - 1]}


@given(several, st.floats(0.0005, 1.0), st.floats(0.01, 0.5))
def test_what_is_called_unusual_is_rejected_by_the_rule_beside_its_peers(peers, p, rate):
    if p <= conformal.cutoff(np.sort(peers), rate):
        assert p in rejected([*peers, p], rate)


@given(several, several, st.floats(0.01, 0.5))
def test_more_that_is_odd_never_makes_the_rule_stricter(peers, odder, rate):
    lowered = [min(p, q) for p, q in zip(peers, odder, strict=False)] + peers[len(odder) :]
    assert conformal.cutoff(np.sort(lowered), rate) >= conformal.cutoff(np.sort(peers), rate)


def test_one_episode_without_peers_is_never_called_unusual():
    assert conformal.cutoff(np.array([]), 0.1) == 0.0


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=50), st.floats(-6, 6))
def test_a_p_value_is_the_share_that_is_as_odd(ordinary, score):
    [p] = conformal.p_values(np.array([score]), np.sort(ordinary))
    assert p == (1 + sum(one >= score for one in ordinary)) / (len(ordinary) + 1)


def test_among_so_many_one_that_is_odder_than_all_can_be_told():
    for scored in range(250, 6000, 7):
        peers = conformal.peers_of(scored)
        assert 1 / (scored - peers + 1) <= conformal.cutoff(np.linspace(0.5, 1, peers), 0.10)


# --- models ----------------------------------------------------------------------------------------------------------


def window(random, count, place=("a/b", "1"), confirmed=0):
    marks = np.zeros(count, bool)
    marks[:confirmed] = True
    return Window(place, random.normal(size=(count, COUNT)), np.arange(count), marks)


@pytest.fixture(scope="module")
def learnt():
    random = np.random.default_rng(3)
    found = learn([window(random, 900), window(random, 700, ("a/c", "2")), window(random, 29, ("a/d", "3"))], fit)
    assert found is not None
    return found


def test_environments_that_are_hardly_known_are_left_out(learnt):
    assert learnt.environments == (("a/b", "1"), ("a/c", "2"))
    assert learnt.baselines().keys() == set(learnt.environments)


def test_a_model_is_the_same_after_it_was_stored(learnt):
    again = model.unpack(learnt.packed(), 7)
    rows = np.random.default_rng(4).normal(size=(50, COUNT)) * 2
    z = learnt.standardised(rows, np.zeros(50, int))
    assert again.packed() == learnt.packed()
    assert (again.version, again.environments, again.cutoff(0.1)) == (7, learnt.environments, learnt.cutoff(0.1))
    assert np.array_equal(again.p_values(z), learnt.p_values(z))


def test_the_same_past_gives_the_same_model(learnt):
    random = np.random.default_rng(3)
    again = learn([window(random, 900), window(random, 700, ("a/c", "2")), window(random, 29, ("a/d", "3"))], fit)
    assert model.digest(again.packed()) == model.digest(learnt.packed())


def test_too_few_give_no_model():
    random = np.random.default_rng(5)
    assert learn([], fit) is None
    assert learn([window(random, learning.NEEDED - 1)], fit) is None
    assert learn([window(random, learning.NEEDED, confirmed=1)], fit) is None
    assert learn([window(random, 29, ("a/b", str(at))) for at in range(60)], fit) is None


def test_what_a_person_confirmed_is_no_ordinary_episode():
    random = np.random.default_rng(6)
    whole = window(random, 1600)
    marked = whole._replace(confirmed=np.arange(1600) % 100 == 99)
    rows = whole.rows.copy()
    rows[marked.confirmed] += 8.0
    found = learn([marked._replace(rows=rows)], fit)
    clean = learn([whole], fit)
    assert found.calibration[-1] < clean.calibration[-1] * 1.5
    assert found.peers[0] == 1 / (len(found.calibration) + 1)  # among the peers they stand: the rule may count with them


def test_a_model_of_other_features_is_not_used(learnt, monkeypatch):
    monkeypatch.setattr(model, "NAMES", ("another",))
    body = learnt.packed()
    monkeypatch.undo()
    assert model.unpack(body) is None


@pytest.mark.parametrize("body", [b"", b"nonsense", packed({"header": np.frombuffer(b"{}", np.uint8)}), packed({"other": np.zeros(1)})])
def test_bytes_that_are_no_model_are_an_error_of_ours(body):
    with pytest.raises(BadArrays):
        model.unpack(body)


def test_no_object_is_stored_and_none_is_read(tmp_path):
    with pytest.raises(ValueError, match="pickle"):
        packed({"a": np.array([object()])})
    np.savez(tmp_path / "a.npz", a=np.array([{"code": 1}], object), allow_pickle=True)
    with pytest.raises(BadArrays):
        unpacked((tmp_path / "a.npz").read_bytes())


def test_what_makes_it_odd_is_named_first():
    random = np.random.default_rng(7)
    rows = random.normal(size=(2000, COUNT)).astype(np.float32)
    odd = Oddness.fitted(rows, fit)
    hits = 0
    for _ in range(40):
        row = random.normal(size=COUNT).astype(np.float32)
        planted = set(random.choice(COUNT, 2, replace=False))
        row[list(planted)] = 6.0
        hits += planted <= set(np.argsort(-odd.contributions(row))[:3])
    assert hits >= 36


def test_every_feature_has_a_least_spread():
    assert FLOORS.shape == (COUNT,)
    assert (FLOORS > 0).all()
