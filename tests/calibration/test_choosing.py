"""Which model holds: what so many labels carry, and who loses less on what neither knew."""

import msgspec
import numpy as np
import pytest

from benchmarks.calibration import stream, world
from inspector.calibration.choosing import choose
from inspector.calibration.fitting import fit, stage_for
from inspector.calibration.labels import Label
from inspector.calibration.model import Stage

LEAK = 0.05


def labels(count, seed=0):
    random = np.random.default_rng(seed)
    return stream(random, world(random), count)


def judged(bad, good):
    return [Label(at, str(at), "a", (), at < bad) for at in range(bad + good)]


@pytest.mark.parametrize(
    ("bad", "good", "stage"),
    [
        (10, 39, Stage.RAW),
        (1, 100, Stage.RAW),
        (100, 1, Stage.RAW),
        (2, 48, Stage.PLATT),
        (29, 400, Stage.PLATT),
        (30, 269, Stage.PLATT),
        (30, 270, Stage.LOGISTIC),
        (400, 29, Stage.PLATT),
    ],
)
def test_the_model_grows_with_what_the_labels_carry(bad, good, stage):
    assert stage_for(judged(bad, good)) is stage


def test_the_first_labels_make_the_first_model_and_it_is_measured():
    choice = choose(labels(300), LEAK, "digest", None)
    model = choice.model
    assert (choice.new, model.policy, model.labels, model.until) == (True, "digest", 300, 300)
    assert model.measured.log_loss < model.measured.raw_log_loss
    assert model.measured.ece.low <= model.measured.ece.value


def test_nothing_changes_without_a_new_label():
    known = labels(300)
    first = choose(known, LEAK, "digest", None).model
    assert choose(known, LEAK, "digest", first) == (first, "no label came since", False)


def test_a_challenger_that_loses_less_on_what_neither_knew_wins():
    known = labels(1500)
    first = choose(known[:100], LEAK, "digest", None).model
    choice = choose(known, LEAK, "digest", first)
    assert (choice.new, choice.model.stage, choice.model.until) == (True, Stage.LOGISTIC, 1500)
    assert "less log loss on 1400 labels" in choice.why


def test_a_champion_that_is_better_than_the_new_fit_stays():
    known = labels(1500)
    best = msgspec.structs.replace(fit(known, LEAK), until=60)  # an oracle: it was fitted on all of them
    choice = choose(known[:160], LEAK, "digest", best)
    assert (choice.new, choice.model) == (False, best)


def test_a_model_that_lost_its_worth_is_left():
    known = labels(600)
    upside_down = msgspec.structs.replace(fit(known[:300], LEAK), stage=Stage.PLATT, intercept=3.0, slope=0.0)
    choice = choose(known, LEAK, "digest", upside_down)
    assert choice.new
    assert choice.model.measured.log_loss < 0.1


def test_without_labels_there_is_nothing_to_choose_by():
    with pytest.raises(ValueError, match="nothing"):
        choose([], LEAK, "digest", None)
