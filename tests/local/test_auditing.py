"""What an audit in one process makes of several trajectories together."""

import json

import pytest

from inspector import catalog, policy
from inspector.check import Cause, Finding, History, Tier, Trajectory, check
from inspector.errors import UnreadableInput
from inspector.local import Declared, Plan, audit, auditing
from inspector.local.sources import Sources
from inspector.local.spool import Spool
from inspector.local.survey import TWINS
from inspector.task import NamedDeclaration, RewardDeclaration
from inspector.testing import envelope
from inspector.verdict import Action, Verdict

TWIN_CHECK = catalog.load().select(only=["builtin/same_steps_with_another_reward"])
UNIT = Declared([NamedDeclaration(id="acme/terminal", version="2026.11.1", reward=RewardDeclaration(min=0, max=1, penalty_min=-1))])


@check(version=1, tier=Tier.EVIDENCE, cause=Cause.POLICY_EXPLOIT)
def cheated(trajectory: Trajectory):
    """Its id says so."""
    if trajectory.id.startswith("cheat"):
        yield Finding(message="it cheated")


CHEATED = (cheated.qualified("mine"),)


@pytest.fixture
def audited(tmp_path):
    def run(*posted, checks=CHEATED, declared=UNIT, files=1):
        paths = [tmp_path / f"{at}.jsonl" for at in range(files)]
        for at, path in enumerate(paths):
            path.write_text("".join(json.dumps(one) + "\n" for one in posted[at::files]))
        with Spool() as spool:
            return list(audit(Sources(tuple(paths)), Plan(checks, policy.load(), declared), spool).reports)

    return run


def rollout(id_, reward, group=None, **about):
    return envelope(id=id_, reward=reward, group={"id": group} if group else None, **about)


def test_the_honest_mean_is_that_of_all_given_files_wherever_they_stand(audited):
    honest = [rollout(f"good-{at}", 1.0) for at in range(400)]
    for posted in ([rollout("cheat", 1.0), *honest], [*honest, rollout("cheat", 1.0)]):
        (judged,) = [r.judgement for r in audited(*posted, files=3) if r.id == "cheat"]
        assert (judged.action, judged.reward_override) == (Action.OVERRIDE_REWARD, -1.0)
    (alone,) = audited(rollout("cheat", 1.0))
    assert (alone.judgement.action, alone.judgement.reward_override) == (Action.OVERRIDE_REWARD, -1.0)


def test_a_group_is_decided_together(audited):
    reports = audited(rollout("cheat", 1.0, "g"), rollout("failed", 0.0, "g"), rollout("other", 0.0, "h"), files=2)
    said = {r.id: (r.judgement.verdict, r.judgement.action) for r in reports}
    assert said["failed"][0] is Verdict.ACCEPT
    assert said["other"] == (Verdict.ACCEPT, Action.KEEP)


def test_a_group_left_with_one_row_is_excluded_and_says_why(audited):
    undeclared = Declared()
    cheat, failed = audited(rollout("cheat", 1.0, "g"), rollout("failed", 0.0, "g"), declared=undeclared)
    assert (cheat.judgement.action, failed.judgement.action) == (Action.EXCLUDE, Action.EXCLUDE)
    assert failed.judgement.verdict is Verdict.ACCEPT
    assert any("excluded with its group" in line for line in failed.why())


def test_groups_of_two_runs_are_two_groups(audited):
    one, other = (rollout(f"cheat-{run}" if run == "a" else run, 1.0, "g", run={"id": run}) for run in "ab")
    reports = audited(one, other, rollout("fine", 0.5, "g", run={"id": "b"}), declared=Declared())
    assert {r.id: r.judgement.action for r in reports} == {"cheat-a": Action.EXCLUDE, "b": Action.KEEP, "fine": Action.KEEP}


def test_twins_are_of_one_task_of_one_environment_version(audited):
    first = rollout("a", 1.0)
    elsewhere = rollout("b", 0.0, task={"id": "another"})
    newer = rollout("c", 0.0, environment={"id": "acme/terminal", "version": "2"})
    assert [r.judgement.verdict for r in audited(first, elsewhere, newer, checks=TWIN_CHECK)] == [Verdict.ACCEPT] * 3
    assert [r.judgement.verdict for r in audited(first, rollout("d", 0.0), checks=TWIN_CHECK, files=2)] == [Verdict.QUARANTINE] * 2


def test_of_many_twins_enough_are_kept_to_find_the_odd_one(audited):
    posted = [rollout(f"t{at}", 1.0) for at in range(6 * TWINS)] + [rollout("odd", 0.0)]
    assert {r.judgement.verdict for r in audited(*posted, checks=TWIN_CHECK)} == {Verdict.QUARANTINE}


def test_the_same_final_state_with_another_reward_is_found_across_files(audited):
    left = {"artifacts": [{"sha256": "ab" * 32, "role": "final_state"}]}
    chosen = [check for check in catalog.load().select() if check.name == "builtin/same_state_another_reward"]
    posted = [rollout("a", 1.0, **left), rollout("b", 0.0, **left), rollout("c", 0.0, task={"id": "another"}, **left), rollout("d", 0.0)]
    said = {r.id: r.judgement.verdict for r in audited(*posted, checks=chosen, files=2)}
    assert said == {"a": Verdict.QUARANTINE, "b": Verdict.QUARANTINE, "c": Verdict.ACCEPT, "d": Verdict.ACCEPT}


def test_every_task_of_a_group_is_told_and_none_where_there_is_no_group(audited):
    told = {}

    @check(version=1, tier=Tier.EVIDENCE, cause=Cause.RECORD_DEFECT)
    def listens(trajectory: Trajectory, history: History):
        """It notes what history says."""
        told[trajectory.id] = list(history.tasks_of_group(trajectory))
        yield from ()

    audited(rollout("a", 1.0, "g"), rollout("b", 0.0, "g", task={"id": "other"}), rollout("c", 0.0), checks=[listens.qualified("mine")])
    assert told == {"a": ["fix-nginx", "other"], "b": ["fix-nginx", "other"], "c": []}


def test_a_check_that_raises_costs_its_own_outcome(audited):
    @check(version=1, tier=Tier.EVIDENCE, cause=Cause.ANOMALY)
    def broken(trajectory: Trajectory):
        """It fails."""
        raise KeyError(trajectory.id)

    (report,) = audited(rollout("cheat", 1.0), checks=[broken.qualified("mine"), cheated.qualified("mine")])
    assert {name: outcome.word for name, outcome in report.coverage.items()} == {"mine/broken": "error", "mine/cheated": "flagged"}


def test_blocks_are_bounded(audited, monkeypatch):
    monkeypatch.setattr(auditing, "BLOCK", 3)
    monkeypatch.setattr(auditing, "BLOCK_BYTES", 4000)
    assert [r.id for r in audited(*[rollout(f"r{at}", 1.0) for at in range(10)])] == [f"r{at}" for at in range(10)]


def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps(rollout(f"r{at}", 1.0)) + "\n" for at in range(3)))

    def change(what, done, total):
        if what == "reading" and done == 3:
            file.write_text(json.dumps(rollout("new", 1.0)) + "\n")

    with Spool() as spool, pytest.raises(UnreadableInput, match="changed while"):
        audit(Sources((file,)), Plan([cheated.qualified("mine")], policy.load()), spool, change)
