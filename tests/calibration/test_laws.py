"""What any calibration must keep, whatever the labels are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.calibration.fitting import fit, platt_targets, predicted
from inspector.calibration.labels import FOLDS, Label, Seen, folds, natural, weights
from inspector.calibration.measuring import Truth, brier, difference, ece, log_loss, truth
from inspector.calibration.model import BadModel, Model, Stage, digest, unpack
from inspector.calibration.records import Record, effective, tally
from inspector.combine import Beta
from inspector.verdict import Cause

PRIOR = Beta(8, 2)
EXPLOIT, BROKEN = Cause.POLICY_EXPLOIT, Cause.INFRASTRUCTURE
NAMES = ("acme/a", "acme/b", "acme/c", "acme/d")


def seen(check="acme/a", score=1.0, cause=EXPLOIT, version=1):
    return Seen(check, version, score, PRIOR, cause)


def label(number, *found, bad=False, **fields):
    return Label(number, str(number), "acme/terminal", found, bad, **fields)


sightings = st.lists(st.builds(seen, st.sampled_from(NAMES), st.floats(0, 1)), max_size=4, unique_by=lambda s: s.check).map(tuple)
labelled = st.builds(
    Label,
    st.integers(1, 10**6),
    st.integers(0, 40).map(str),
    st.sampled_from(["acme/a", "acme/b"]),
    sightings,
    st.booleans(),
    st.sampled_from([None, EXPLOIT, BROKEN]),
    st.floats(1, 1000),
    st.booleans(),
)
many = st.lists(labelled, min_size=1, max_size=60)


# --- records ---------------------------------------------------------------------------------------------------------


def test_a_posterior_is_the_prior_and_the_labels_together():
    right, wrong = [label(at, seen(), bad=True) for at in range(9)], [label(9, seen())]
    record = tally([*right, *wrong])["acme/a@1"]
    assert (record.labels, record.right, record.wrong) == (10, pytest.approx(9), pytest.approx(1))
    assert record.precision(PRIOR) == pytest.approx(Beta(17, 3))


@given(many)
def test_a_posterior_lies_between_the_prior_and_what_the_labels_say(labels):
    for record in (record for record in tally(labels).values() if record.labels):
        said, posterior = record.right / (record.right + record.wrong), record.precision(PRIOR).mean
        assert min(said, PRIOR.mean) - 1e-9 <= posterior <= max(said, PRIOR.mean) + 1e-9


@given(st.lists(st.tuples(st.floats(1e-3, 1e3), st.booleans()), min_size=1))
def test_unequal_weights_are_worth_fewer_labels_and_never_more_than_there_are(weighed):
    yes, no = effective(weighed)
    assert 0 < yes + no <= len(weighed) * (1 + 1e-9)
    assert effective([]) == (0.0, 0.0)


def test_equal_weights_are_worth_their_number():
    assert effective([(250.0, True)] * 3 + [(250.0, False)]) == (pytest.approx(3), pytest.approx(1))


def test_a_finding_of_another_cause_than_the_person_named_is_wrong():
    labels = [label(1, seen(cause=EXPLOIT), seen("acme/b", cause=BROKEN), bad=True, cause=BROKEN)]
    assert [(record.right, record.wrong) for record in tally(labels).values()] == [(0, 1), (1, 0)]


def test_a_fault_that_nobody_saw_counts_against_the_checks_of_its_cause_alone():
    caught = [label(at, seen(), seen("acme/b", cause=BROKEN), bad=True, cause=EXPLOIT) for at in range(3)]
    missed = label(4, bad=True, cause=EXPLOIT, by_chance=True)
    records = tally([*caught, missed])
    assert (records["acme/a@1"].caught, records["acme/a@1"].missed) == (pytest.approx(3), pytest.approx(1))
    assert (records["acme/b@1"].caught, records["acme/b@1"].missed) == (0, 0)


def test_what_another_check_of_the_cause_saw_is_of_that_ones_kind():
    labels = [label(1, seen(), bad=True, cause=EXPLOIT), label(2, seen("acme/b"), bad=True, cause=EXPLOIT), label(3, by_chance=True)]
    assert [(record.caught, record.missed) for record in tally(labels).values()] == [(1, 0), (1, 0)]


def test_recall_is_not_known_where_nobody_looked_by_chance():
    record = tally([label(at, seen(), bad=True, cause=EXPLOIT) for at in range(30)])["acme/a@1"]
    assert record.recall(Beta(9, 1)) == Beta(9, 1)


def test_versions_of_a_check_have_records_of_their_own():
    model = Model(policy="", records=tally([label(at, seen(version=2)) for at in range(5)]))
    assert (model.precision("acme/a", 1, PRIOR), model.precision("acme/a", 2, PRIOR)) == (PRIOR, pytest.approx(Beta(8, 7)))
    assert model.recall("acme/z", 1, PRIOR) == PRIOR


# --- models ----------------------------------------------------------------------------------------------------------

coefficients = st.floats(0, 50)
models = st.builds(
    Model,
    policy=st.just(""),
    stage=st.sampled_from(Stage),
    intercept=st.floats(-50, 50),
    slope=coefficients,
    checks=st.dictionaries(st.sampled_from([f"{name}@1" for name in NAMES]), coefficients),
    environment=coefficients,
    environments=st.dictionaries(st.sampled_from(["acme/a", "acme/b"]), st.floats(-10, 10)),
)
scores = st.dictionaries(st.sampled_from([f"{name}@1" for name in NAMES]), st.floats(0, 1))


@given(models, st.floats(0, 1), st.floats(0, 1), scores, scores)
def test_more_evidence_never_lowers_the_probability(model, noisy, more_noisy, some, more):
    low, high = sorted([noisy, more_noisy])
    worse = {name: max(some.get(name, 0.0), more.get(name, 0.0)) for name in some | more}
    assert 0 <= model.probability(low, some, "acme/a") <= model.probability(high, worse, "acme/a") <= 1


@settings(max_examples=25, deadline=None)
@given(st.lists(labelled, min_size=5, max_size=60), st.sampled_from(Stage))
def test_a_fit_on_any_labels_gives_a_model_that_can_be_stored_and_stays_monotone(labels, stage):
    model = fit(labels, 0.05, stage=stage)
    assert unpack(model.packed()) == model
    said = predicted(model, labels, 0.05)
    assert np.isfinite(said).all()
    assert ((said >= 0) & (said <= 1)).all()
    worse = [one._replace(seen=tuple(s._replace(score=1.0) for s in one.seen)) for one in labels]
    assert (predicted(model, worse, 0.05) >= said).all()
    assert model.labels == len(natural(labels))


def test_a_check_that_repeats_another_clears_nothing():
    random = np.random.default_rng(3)
    bad = random.random(600) < 0.3
    labels = [label(at, *_repeated(bool(bad[at]), random), bad=bool(bad[at])) for at in range(600)]
    model = fit(labels, 0.05)
    assert model.stage is Stage.LOGISTIC
    assert all(coefficient >= 0 for coefficient in model.checks.values())


def _repeated(bad, random):
    if random.random() > (0.8 if bad else 0.1):
        return ()
    return (seen(), seen("acme/b")) if random.random() < (0.5 if bad else 0.9) else (seen(),)  # the second alone speaks of good ones


@pytest.mark.parametrize("body", [b"{", b"\xff", b'{"policy": "", "slope": -1}', b'{"policy": "", "checks": {"a@1": -0.1}}', b'{"policy": "", "other": 1}'])
def test_a_damaged_model_is_refused_and_so_is_one_that_evidence_would_lower(body):
    with pytest.raises(BadModel):
        unpack(body)


def test_a_model_is_named_by_its_values():
    assert digest(Model(policy="a").packed()) == digest(Model(policy="a").packed()) != digest(Model(policy="b").packed())


def test_platt_targets_are_his_own():
    targets = platt_targets(np.array([1.0, 1.0, 0.0]), np.ones(3))
    assert targets == pytest.approx([3 / 4, 3 / 4, 1 / 3])


# --- labels ----------------------------------------------------------------------------------------------------------


@given(many)
def test_what_belongs_together_is_held_out_together(labels):
    for learnt, held in folds(labels):
        assert {labels[at].cluster for at in learnt}.isdisjoint(labels[at].cluster for at in held)
    assert len(folds(labels)) <= FOLDS


@given(many)
def test_weights_have_mean_one_and_lie_within_the_truncation(labels):
    found = weights(labels)
    assert np.mean(found) == pytest.approx(1)
    assert max(found) <= 3 * min(found) * (1 + 1e-9)
    assert np.mean(weights(labels, truncated=False)) == pytest.approx(1)


# --- measures --------------------------------------------------------------------------------------------------------


def stream(probability, random):
    bad = (random.random(len(probability)) < probability).astype(float)
    return Truth(bad, np.ones(len(bad)), np.arange(len(bad)))


@pytest.mark.parametrize("seed", range(3))
def test_a_source_that_means_what_it_says_has_no_calibration_error_to_speak_of(seed):
    random = np.random.default_rng(seed)
    probability = random.beta(0.5, 3, 5_000)
    known = stream(probability, random)
    assert ece(probability, known).value < 0.02
    assert ece(probability**0.25, known).value > 0.1
    found = brier(probability, known)
    assert found.low < found.value < found.high
    assert log_loss(probability, known) < log_loss(probability**0.25, known)


def test_a_difference_of_log_losses_has_an_error_that_clusters_widen():
    random = np.random.default_rng(0)
    probability = random.uniform(0.05, 0.95, 500)
    known = stream(probability, random)
    apart = difference(probability, np.full(500, 0.5), known)
    assert apart.mean < -2 * apart.error < 0
    tenfold = Truth(*(np.repeat(part, 10) for part in known))
    again = difference(np.repeat(probability, 10), np.full(5000, 0.5), tenfold)
    assert (again.mean, again.error) == (pytest.approx(apart.mean), pytest.approx(apart.error))


def test_truth_numbers_clusters():
    assert list(truth([label(5), label(3), label(5)]).cluster) == [1, 0, 1]


def test_a_record_has_no_labels_to_begin_with():
    assert Record().precision(PRIOR) == PRIOR


def test_a_canary_tells_of_recall_alone():
    planted = [label(at, seen(), bad=True, cause=EXPLOIT, canary=True) for at in range(3)] + [label(9, bad=True, cause=EXPLOIT, canary=True)]
    record = tally([*planted, label(10, seen(), bad=False)])["acme/a@1"]
    assert (record.labels, record.right, record.wrong, record.caught, record.missed) == (1, 0, 1, pytest.approx(3), pytest.approx(1))
    model = fit([*planted, label(10, seen(), bad=False)], 0.05)
    assert (model.labels, model.positives) == (1, 0)
    assert fit(planted, 0.05).records["acme/a@1"].caught == pytest.approx(3)
