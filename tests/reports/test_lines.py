"""What programs read."""

import json

import msgspec
import pytest

from inspector.probe.words import Outcome
from inspector.reports.baseline import Baseline
from inspector.reports.lines import lines
from inspector.reports.probed import Probed
from tests.reports.house import AT, HOSTILE, environment, hostile, probed, task

TASK = ["task", "outcomes", "probabilities", "evidence", "runs", "cpu_s", "reproduce"]


def test_a_line_says_what_design_promises_and_the_last_one_is_of_the_environment():
    first, second, last = lines(probed(environment(task("a", Outcome.FLAKY, probabilities={"flaky": 0.4}), task("b", Outcome.SOUND))))
    assert list(first)[: len(TASK)] == TASK
    assert (first["task"], first["outcomes"], first["probabilities"], first["runs"], first["cpu_s"]) == ("a", ["flaky"], {"flaky": 0.4}, 1, 0.25)
    assert list(first["evidence"][0]) == ["outcome", "probe", "claim", "proof", "detail", "also", "reproduce"]
    assert second["evidence"] == []
    assert (last["environment"], last["tasks"], last["outcomes"], last["runs"]) == ("tasks", 2, {"sound": 1, "flaky": 1}, 2)
    assert "task" not in last


def test_news_are_counted_where_there_is_a_baseline():
    report = probed(environment(task("a", Outcome.FLAKY)))
    assert [line.get("new") for line in lines(report)] == [None, None]
    assert [line["new"] for line in lines(Probed(report.environments, AT, baseline=Baseline()))] == [1, 1]


@pytest.mark.parametrize("length", [0, 1 << 20])
def test_hostile_text_is_whole_for_every_reader(length):
    for line in lines(hostile(length)):
        assert json.loads(json.dumps(line)) == msgspec.json.decode(msgspec.json.encode(line))
    told = next(lines(hostile(length)))["evidence"][0]["proof"]
    assert told == HOSTILE.replace("\ud800", "\\ud800") + "A" * length
