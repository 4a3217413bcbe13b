"""From people's judgements to what audits believe, on a real database."""

from __future__ import annotations

import random
from collections.abc import Iterator
from uuid import UUID

import pytest

from inspector import calibrating, policy, review
from inspector.audit import Pace, beliefs
from inspector.calibration.model import Model, Stage, digest
from inspector.check import Finding, Trajectory, check
from inspector.combine import Beta
from inspector.errors import BadSubmission
from inspector.review import JudgementOfPerson
from inspector.store import calibrations, labels, selections, trajectories, verdicts
from inspector.store.session import transaction
from inspector.task import Declaration, RewardDeclaration
from inspector.verdict import Action, Cause, Tier, Verdict
from tests.audit.conftest import Desk, OpenDesk, episode

ACCEPT, QUARANTINE, _ = JudgementOfPerson
DEFAULT = policy.load()


def says(word: str):
    def found(trajectory: Trajectory) -> Iterator[Finding]:
        """The agent said so."""
        if word in str(trajectory.steps[0].message):
            yield Finding(message=word)

    found.__name__ = word
    return check(version=1, tier=Tier.ACTION, cause=Cause.POLICY_EXPLOIT)(found).qualified("acme")


@pytest.fixture
def desk(open_desk: OpenDesk) -> Desk:
    return open_desk(says("wolf"), says("sheep"))


def audit(desk: Desk, spot_checks: float = 0.0) -> None:
    desk.auditor(Pace(spot_checks=spot_checks)).drain()


def post(desk: Desk, *words: str) -> list[UUID]:
    return [receipt.key for receipt in desk.post(*[episode(f"{words[0]}-{at}", says=f"{word} {at}") for at, word in enumerate(words)])]


def judge(desk: Desk, key: UUID, *, bad: bool, cause: Cause | None = None, canary: bool = False) -> None:
    with transaction(desk.engine) as session:
        review.judge(session, desk.project.id, key, "mira", QUARANTINE if bad else ACCEPT, None, "", cause, canary=canary)


def known(desk: Desk):
    with transaction(desk.engine) as session:
        return calibrating.labelled(session, desk.project.id, DEFAULT)


def belief(desk: Desk):
    with transaction(desk.engine) as session:
        return beliefs.Beliefs(DEFAULT).of(session, desk.project.id)


def test_a_judgement_is_a_label_of_what_was_found(desk: Desk) -> None:
    wolf, both = post(desk, "a wolf", "a wolf and a sheep")
    audit(desk)
    judge(desk, wolf, bad=True, cause=Cause.INFRASTRUCTURE)
    judge(desk, both, bad=False)
    judge(desk, both, bad=True)  # what was said last
    first, second = known(desk)
    assert ([s.name for s in first.seen], first.bad, first.cause) == (["acme/wolf@1"], True, Cause.INFRASTRUCTURE)
    assert ([s.name for s in second.seen], second.bad, second.environment) == (["acme/sheep@1", "acme/wolf@1"], True, "acme/terminal")
    assert first.seen[0].prior == Beta(8, 2)


def test_a_label_stands_for_all_of_its_verdict(desk: Desk) -> None:
    wolves = post(desk, *["wolf"] * 8)
    audit(desk)
    judge(desk, wolves[0], bad=True)
    judge(desk, wolves[1], bad=False)
    assert [(one.weight, one.by_chance) for one in known(desk)] == [(4.0, False), (4.0, False)]


def test_of_accepted_ones_those_stand_for_the_rest_that_chance_picked(desk: Desk) -> None:
    keys = post(desk, *["nothing"] * 40)
    audit(desk, spot_checks=0.25)
    with transaction(desk.engine) as session:
        picked = labels.open_picks(session, desk.project.id, 50)
    assert 2 <= len(picked) <= 25
    other = next(key for key in keys if key not in picked)
    judge(desk, picked[0], bad=True)
    judge(desk, other, bad=True)
    assert [(one.weight, one.by_chance) for one in known(desk)] == [(4.0 * len(picked), True), (1.0, False)]
    with transaction(desk.engine) as session:
        assert labels.open_picks(session, desk.project.id, 50) == picked[1:]


def test_chance_picks_a_share_whatever_is_found_and_once(desk: Desk) -> None:
    keys = post(desk, *[random.Random(at).choice(["wolf", "nothing"]) for at in range(60)])
    audit(desk, spot_checks=1.0)
    with transaction(desk.engine) as session:
        assert sorted(labels.open_picks(session, desk.project.id, 100)) == sorted(keys)
        labels.pick(session, [labels.Pick(keys[0], desk.project.id, 0.0, 1.0)])
        assert len(labels.open_picks(session, desk.project.id, 100)) == len(keys)


def test_what_is_forgotten_is_no_pick_any_more(desk: Desk) -> None:
    post(desk, "nothing")
    audit(desk, spot_checks=1.0)
    with transaction(desk.engine) as session:
        trajectories.forget(session, desk.project.id, UUID(int=2**128 - 1), 10)
        assert labels.open_picks(session, desk.project.id, 10) == []


def test_enough_judgements_change_what_is_believed_and_verdicts_name_it(desk: Desk) -> None:
    keys = post(desk, *["wolf"] * 40, *["sheep"] * 40)
    audit(desk)
    for at, key in enumerate(keys):
        judge(desk, key, bad=at < 40 or at >= 78)
    [done] = calibrating.calibrate_due(desk.engine, DEFAULT)
    assert (done.project, done.labels, done.new) == (desk.project.id, 80, True)
    now = belief(desk)
    wolf, sheep = (now.precision(name, 1, Tier.ACTION, Cause.POLICY_EXPLOIT) for name in ("acme/wolf", "acme/sheep"))
    assert (wolf, sheep) == (pytest.approx(Beta(48, 2)), pytest.approx(Beta(10, 40)))
    assert now.name == f"default@3+{digest(now.model.packed()).hex()[:8]}"
    post(desk, "wolf again", "sheep again")
    audit(desk)
    assert [desk.stored(f"wolf again-{at}").verdict for at in (0, 1)] == [Verdict.QUARANTINE, Verdict.ACCEPT]
    with transaction(desk.engine) as session:
        assert selections.policy_name(session, desk.stored("wolf again-0").policy) == now.name
    assert desk.feed()[-1].author == f"policy:{now.name}"


def test_a_check_that_people_confirmed_often_enough_proves_and_its_exploit_loses(desk: Desk) -> None:
    keys = post(desk, *["wolf"] * 100)
    audit(desk)
    for key in keys:
        judge(desk, key, bad=True, cause=Cause.POLICY_EXPLOIT)
    calibrating.calibrate_due(desk.engine, DEFAULT)
    assert belief(desk).precision("acme/wolf", 1, Tier.ACTION, Cause.POLICY_EXPLOIT).lower >= DEFAULT.thresholds.proof
    desk.declare(Declaration(reward=RewardDeclaration(min=0.0, max=1.0, paid_at=1.0, penalty_min=-1.0)))
    post(desk, "another wolf")
    audit(desk)
    assert desk.stored("another wolf-0").action is Action.OVERRIDE_REWARD


def test_it_is_due_where_enough_was_judged_since_and_looked_at_once(desk: Desk) -> None:
    keys = post(desk, *["wolf"] * 30)
    audit(desk)
    for key in keys[:9]:
        judge(desk, key, bad=True)
    assert calibrating.calibrate_due(desk.engine, DEFAULT) == []
    judge(desk, keys[9], bad=True)
    assert [done.labels for done in calibrating.calibrate_due(desk.engine, DEFAULT)] == [10]
    assert calibrating.calibrate_due(desk.engine, DEFAULT) == []
    for key in keys[10:21]:
        judge(desk, key, bad=True)
    assert [done.labels for done in calibrating.calibrate_due(desk.engine, DEFAULT)] == [21]
    assert calibrating.calibrate_due(desk.engine, DEFAULT) == []


def test_a_model_of_another_policy_holds_no_more(desk: Desk) -> None:
    other = Model(policy="another", stage=Stage.PLATT, intercept=9.0)
    with transaction(desk.engine) as session:
        calibrations.add(session, desk.project.id, b"d", "another", 0, "", other.packed())
    assert (belief(desk).name, belief(desk).calibrated("acme/terminal")) == ("default@3", None)


def test_a_damaged_model_leaves_the_policy_alone(desk: Desk) -> None:
    with transaction(desk.engine) as session:
        calibrations.add(session, desk.project.id, b"d", DEFAULT.digest, 0, "", b"{")
    assert (belief(desk).name, belief(desk).without_findings("acme/terminal")) == ("default@3", DEFAULT.prior)
    post(desk, "wolf")
    audit(desk)
    assert desk.stored("wolf-0").verdict is Verdict.QUARANTINE


def test_what_one_project_judged_changes_nothing_in_another(open_desk: OpenDesk) -> None:
    one, other = (open_desk(says("wolf"), name=name) for name in ("one", "other"))
    keys = post(one, *["wolf"] * 20)
    audit(one)
    for key in keys:
        judge(one, key, bad=False)
    calibrating.calibrate_due(one.engine, DEFAULT)
    assert (belief(one).name == "default@3", belief(other).name == "default@3") == (False, True)


def test_old_models_are_gone_and_the_last_holds(desk: Desk) -> None:
    with transaction(desk.engine) as session:
        versions = [calibrations.add(session, desk.project.id, b"d", "p", at, "", b"{}") for at in range(12)]
        assert versions == list(range(1, 13))
        assert [calibrations.body(session, desk.project.id, version) is None for version in (2, 3, 12)] == [True, False, False]
        assert calibrations.latest(session, desk.project.id).version == 12
        assert verdicts.assessed(session, []) == {}


def test_what_a_revoked_check_found_is_in_no_label(desk: Desk) -> None:
    [key] = post(desk, "wolf and sheep")
    audit(desk)
    judge(desk, key, bad=True)
    with transaction(desk.engine) as session:
        selections.revoke(session, selections.ids_of(session, "acme/wolf", 1), desk.project.id)
    assert [[s.check for s in one.seen] for one in known(desk)] == [["acme/sheep"]]


def test_planted_faults_tell_what_a_check_misses(desk: Desk) -> None:
    keys = post(desk, *["wolf"] * 10, *["nothing"] * 10)
    audit(desk)
    for key in keys[1:]:
        judge(desk, key, bad=True, cause=Cause.POLICY_EXPLOIT, canary=True)
    judge(desk, keys[0], bad=True)
    calibrating.calibrate_due(desk.engine, DEFAULT)
    now = belief(desk)
    assert now.recall("acme/wolf", 1) == pytest.approx((9 + 9) / (10 + 19))
    assert now.precision("acme/wolf", 1, Tier.ACTION, Cause.POLICY_EXPLOIT) == pytest.approx(Beta(9, 2))


def test_a_canary_needs_its_cause(desk: Desk) -> None:
    [key] = post(desk, "wolf")
    audit(desk)
    with pytest.raises(BadSubmission, match="canary"):
        judge(desk, key, bad=True, canary=True)


def test_what_nothing_was_found_in_is_as_probable_as_the_model_says_of_its_environment(desk: Desk) -> None:
    fitted = Model(policy=DEFAULT.digest, stage=Stage.LOGISTIC, intercept=-2.0, environment=1.0, environments={"acme/terminal": 1.5}, elsewhere=-1.0)
    with transaction(desk.engine) as session:
        calibrations.add(session, desk.project.id, b"d", DEFAULT.digest, 0, "", fitted.packed())
    now = belief(desk)
    for place in ("acme/terminal", "acme/other", "acme/terminal"):
        assert now.without_findings(place) == fitted.probability(DEFAULT.prior, {}, place)
    post(desk, "nothing")
    audit(desk)
    stored = desk.stored("nothing-0")
    assert (stored.verdict, stored.probability) == (Verdict.ACCEPT, now.without_findings("acme/terminal"))
