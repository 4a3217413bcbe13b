"""What audits know of the ordinary: learnt on a real Postgres from what was posted, and no more than that."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from inspector import catalog, learning
from inspector.anomaly import learning as rules
from inspector.anomaly import model, windows
from inspector.anomaly.fitting import fit, fit_apart
from inspector.audit import usual
from inspector.demo.ordinary import episode, ordinary
from inspector.review import JudgementOfPerson, judge
from inspector.store import baselines, patches, verdicts, work
from inspector.store.segments import SegmentReader
from inspector.store.session import transaction
from inspector.verdict import Action, Cause, Outcome, Verdict

CHECK = "builtin/unlike_its_environment"
FEW = 300  # as many as a service needs take their time
PAST = [json.loads(line) for line in ordinary(FEW)]


def loop(id_: str, environment: str = "tally/ledgers") -> dict:
    """Eighty calls, of which none succeeds."""
    odd = episode(random.Random(id_), id_, 5000)
    steps = odd["trajectory"]["steps"][:1]
    for at in range(2, 82):
        call = {"tool_call_id": f"c{at}", "function_name": "post_entry", "arguments": {"amount": at}}
        result = {"source_call_id": f"c{at}", "content": f"Error: {at} refused"}
        steps.append({"step_id": at, "source": "agent", "message": "", "tool_calls": [call], "observation": {"results": [result]}})
    return odd | {"trajectory": odd["trajectory"] | {"steps": steps}, "environment": odd["environment"] | {"id": environment}}


@pytest.fixture
def desk(open_desk, monkeypatch):
    """With this check alone, and content with few episodes."""
    monkeypatch.setattr(rules, "NEEDED", FEW)
    monkeypatch.setattr(usual, "NEEDED", FEW)
    return open_desk(catalog.load().checks[CHECK])


@pytest.fixture
def taught(desk):
    """It has learnt from as many ordinary episodes as it needs."""
    desk.post(*PAST)
    desk.audit()
    assert [learnt.version for learnt in learn(desk)] == [1]
    return desk


def learn(desk):
    return learning.learn_due(desk.engine, SegmentReader(desk.root), fit)


def outcome(desk, id_):
    at = [check.name for check in desk.checks].index(CHECK)
    stored = desk.stored(id_)
    return stored.outcomes[at], stored.notes.get(at)


def held(desk):
    with transaction(desk.engine) as session:
        fitted = baselines.latest(session, desk.project.id)
        body = baselines.body(session, desk.project.id, fitted.version)
    assert model.digest(body) == fitted.digest
    return model.unpack(body, fitted.version)


def test_without_a_model_it_says_how_much_is_missing(desk):
    desk.post(loop("odd"))
    desk.audit()
    assert outcome(desk, "odd") == (Outcome.NOT_ASSESSED, f"baselines: episode_shape: 1 trajectories of this project, needs {FEW}")
    assert learn(desk) == []
    assert desk.stored("odd").verdict is Verdict.ACCEPT


def test_an_outlier_is_flagged_explained_and_kept(taught):
    taught.post(loop("odd"), episode(random.Random(3), "even", 5001))
    taught.audit()
    stored = taught.stored("odd")
    assert (outcome(taught, "odd"), outcome(taught, "even")) == ((Outcome.FLAGGED, None), (Outcome.CLEAN, None))
    assert (stored.verdict, stored.action, stored.cause, stored.open) == (Verdict.FLAG, Action.KEEP, Cause.ANOMALY, True)
    assert taught.feed() == []
    with transaction(taught.engine) as session:
        [finding] = verdicts.findings(session, taught.key("odd"))
    assert "answers of tools that speak of an error: 80 of 80 (usually 0%)" in finding.message
    assert "(baseline 1, p = " in finding.message
    assert finding.p_value < 0.01


def test_another_audit_says_the_same_and_changes_no_model(taught):
    taught.post(loop("odd"))
    taught.audit()
    before = taught.stored("odd")
    with transaction(taught.engine) as session:
        work.add_trajectories(session, taught.project.id, [taught.key("odd")])
    assert taught.audit() == 1
    assert taught.stored("odd") == before
    assert learn(taught) == []


def test_an_environment_that_is_hardly_known_is_not_judged(taught):
    taught.post(loop("stranger", "tally/warehouse"))
    taught.audit()
    seen, note = outcome(taught, "stranger")
    assert (seen, note) == (
        Outcome.NOT_ASSESSED,
        f"baselines: episode_shape: baseline 1 knows fewer than {rules.NEEDED_OF_ENVIRONMENT} episodes of this environment version",
    )


def test_a_project_knows_nothing_of_another_ones_episodes(taught, open_desk):
    other = open_desk(*taught.checks, name="beta")
    other.post(loop("odd"))
    other.audit()
    assert outcome(other, "odd")[0] is Outcome.NOT_ASSESSED


def test_the_window_moves_and_forgets_what_a_person_confirmed(taught, monkeypatch):
    monkeypatch.setattr(learning, "WINDOW", FEW + 100)
    taught.post(*[loop(f"odd{at}") for at in range(3)], *[json.loads(line) for line in ordinary(150, seed=7, name="later")])
    taught.audit()
    with transaction(taught.engine) as session:
        judge(session, taught.project.id, taught.key("odd0"), "ann", JudgementOfPerson.QUARANTINE, None, "stuck")
    [learnt] = learn(taught)
    assert (learnt.version, learnt.episodes) == (2, FEW + 100)
    scored = learnt.episodes - learnt.episodes // 3
    fitted = held(taught)
    assert len(fitted.calibration) == scored - 1 - len(fitted.peers)  # one of them was confirmed, and is no ordinary one
    with transaction(taught.engine) as session:
        [window] = baselines.windows(session, taught.project.id, 10)
    assert len(windows.unpack(window.body)) == learnt.episodes
    assert taught.key("odd0") in windows.unpack(window.body)


def test_a_reward_that_came_later_is_learnt_too(taught):
    key = taught.key("tally-past-00003")
    with transaction(taught.engine) as session:
        patches.add(session, key, "rewards", json.dumps({"tests": {"score": 1.0}}).encode())
    taught.post(*[json.loads(line) for line in ordinary(150, seed=7, name="later")])
    taught.audit()
    learn(taught)
    with transaction(taught.engine) as session:
        [window] = baselines.windows(session, taught.project.id, 10)
    assert windows.unpack(window.body)[key].added == 1


def test_what_cannot_be_read_any_more_is_not_learnt_from(desk):
    desk.post(*PAST)
    desk.audit()
    [segment, *_] = sorted(desk.root.rglob("*.seg"))
    segment.write_bytes(segment.read_bytes()[:5000] + bytes(5000) + segment.read_bytes()[10000:])
    assert learn(desk) == []  # too few are left


def test_models_keep_their_digests_and_old_bodies_go(taught):
    with transaction(taught.engine) as session:
        for _ in range(baselines.KEPT):
            fitted = baselines.latest(session, taught.project.id)
            body = baselines.body(session, taught.project.id, fitted.version)
            baselines.add_model(session, taught.project.id, fitted.digest, 1, baselines.NIL, body)
    with transaction(taught.engine) as session:
        assert baselines.latest(session, taught.project.id).version == baselines.KEPT + 1
        assert baselines.body(session, taught.project.id, 1) is None
        assert baselines.body(session, taught.project.id, 2) is not None


def test_a_damaged_model_is_not_used(taught):
    with transaction(taught.engine) as session:
        fitted = baselines.latest(session, taught.project.id)
        body = bytearray(baselines.body(session, taught.project.id, fitted.version))
        body[-40] ^= 1
        baselines.add_model(session, taught.project.id, fitted.digest, 1, baselines.NIL, bytes(body))
    taught.post(loop("odd"))
    taught.audit()
    assert outcome(taught, "odd") == (
        Outcome.NOT_ASSESSED,
        "baselines: episode_shape: baseline 2 cannot be used by this version; the next one is to come",
    )


def test_only_one_process_learns_at_a_time(taught):
    with baselines.learning_alone(taught.engine) as first, baselines.learning_alone(taught.engine) as second:
        assert (first, second) == (True, False)
        assert learn(taught) == []


def test_a_fit_in_a_process_of_its_own_is_the_same():
    rows = np.random.default_rng(5).normal(size=(300, 6)).astype(np.float32)
    assert np.array_equal(fit_apart(rows, limit_s=120).score(rows), fit(rows).score(rows))
