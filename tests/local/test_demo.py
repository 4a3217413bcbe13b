"""The bundled trajectories, audited with no server, must get the verdicts that lie beside them; and keep them whatever is renamed."""

import json
import random
import tempfile
from functools import cache
from pathlib import Path

import pytest

from inspector import catalog, policy
from inspector.anomaly.fitting import fit
from inspector.demo.comparison import Seen, compare, folder, idle
from inspector.demo.ordinary import ordinary
from inspector.formats import Imported
from inspector.local import Declared, Plan, audit
from inspector.local.declared import read_file
from inspector.local.sources import Sources
from inspector.local.spool import Spool
from inspector.local.usual import Usual, usual_of

CHECKS = catalog.load().select()
DECLARATIONS = read_file(folder() / "declarations.yaml")


@cache
def usual():
    """What is ordinary among the episodes that the demo's service learns from."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        file.writelines(line + b"\n" for line in ordinary())
        file.flush()
        return usual_of(Sources((Path(file.name),)), fit)


def seen_of(paths, *, checks=CHECKS, declarations=DECLARATIONS, names=None):
    """`names` says how environments are called now."""
    known = {(names[place[0]] if names else place[0], place[1]): baselines for place, baselines in usual().known.items()}
    plan = Plan(checks, policy.load(), Declared(declarations), usual=Usual(known, usual().otherwise))
    with Spool() as spool:
        done = audit(Sources(tuple(paths)), plan, spool)
        assert not done.refused
        reports = list(done.reports)
    return {r.id: Seen(r.judgement.verdict.word, r.judgement.action.value, r.judgement.cause, frozenset(f.check for f in r.findings)) for r in reports}


@cache
def bundled():
    return seen_of([folder() / "trajectories"])


@cache
def envelopes():
    """Those of every format, as they would be posted."""
    found = list(Sources((folder() / "trajectories",)).read())
    assert all(isinstance(one, Imported) for one in found)
    return [one.line.decode() for one in found]


def audited(lines, tmp_path, **options):
    file = tmp_path / "all.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines))
    return seen_of([file], **options)


def faults(seen):
    return [f"{row.id}: {row.fault}" for row in compare(seen) if row.fault] + idle(seen.values())


def test_every_verdict_action_and_cause_is_as_expected():
    assert faults(bundled()) == []


UNSHOWN = {  # what no file tells: of probes, and of final states, which the bundled formats do not name
    "builtin/same_state_another_reward",
    "builtin/replay_disagrees",
    "builtin/scored_by_a_verifier_that_a_probe_broke",
    "builtin/scored_on_a_task_that_cannot_be_solved",
}


@pytest.mark.parametrize("check", [check.name for check in CHECKS if check.name.startswith("builtin/") and check.name not in UNSHOWN])
def test_without_any_one_check_the_demo_fails(check):
    left = [one for one in CHECKS if one.name != check]
    assert set(faults(seen_of([folder() / "trajectories"], checks=left))) > set(faults(bundled()))


@pytest.mark.parametrize("seed", range(4))
def test_the_order_changes_no_verdict(seed, tmp_path):
    lines = list(envelopes())
    random.Random(seed).shuffle(lines)
    assert audited(lines, tmp_path) == bundled()


def test_extra_changes_no_verdict(tmp_path):
    def without(line):
        posted = json.loads(line)
        posted.pop("extra", None)
        return json.dumps(posted)

    # a number beyond a float is a defect of the record that json.dumps would not repeat
    lines = [line if "1e999" in line else without(line) for line in envelopes()]
    assert audited(lines, tmp_path) == bundled()


def test_names_change_no_verdict(tmp_path):
    """Every id, environment and run, one to one."""
    ids, environments, runs = {}, {}, {}

    def new(names, old, form):
        return names.setdefault(old, form.format(len(names)))

    def renamed(line):
        posted = json.loads(line, parse_float=Verbatim)
        posted["id"] = new(ids, posted["id"], "id-{}")
        posted["environment"]["id"] = new(environments, posted["environment"]["id"], "team-{0}/environment-{0}")
        if posted.get("run"):
            posted["run"]["id"] = new(runs, posted["run"]["id"], "run-{}")
        return written(posted)

    lines = [renamed(line) for line in envelopes()]
    declarations = [declaration_of(one, environments[one.id]) for one in DECLARATIONS]
    back = {after: before for before, after in ids.items()}
    assert {back[id_]: seen for id_, seen in audited(lines, tmp_path, declarations=declarations, names=environments).items()} == bundled()


class Verbatim(float):
    """A number as it was written, `1e999` included."""

    def __new__(cls, text):
        number = super().__new__(cls, text)
        number.text = text
        return number


def written(value):
    if isinstance(value, Verbatim):
        return value.text
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{written(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return json.dumps(value)


def declaration_of(one, environment):
    import msgspec

    return msgspec.structs.replace(one, id=environment)
