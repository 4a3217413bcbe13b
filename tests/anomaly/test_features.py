"""The shape of an episode does not depend on names, and nothing that may be posted stops its reading."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector import gates
from inspector.anomaly.features import COUNT, FEATURES, NAMES, matrix, told
from inspector.anomaly.pointing import place_of
from inspector.anomaly.walking import Walk, walk
from inspector.check import text_at
from inspector.demo.ordinary import ordinary
from inspector.testing import envelope, odd_trajectories, trajectory

LINES = [json.loads(line) for line in ordinary(20, seed=3)]


def read(posted):
    return gates.read(json.dumps(posted).encode())


def test_every_feature_is_counted_and_named_once():
    assert set(NAMES) < set(Walk._fields)
    assert Walk._fields[:COUNT] == NAMES
    assert len({feature.says for feature in FEATURES}) == COUNT
    assert all(feature.of in Walk._fields for feature in FEATURES if feature.of)


@pytest.mark.parametrize("name", odd_trajectories())
def test_odd_records_have_features_that_are_numbers_or_missing(name):
    row = matrix([odd_trajectories()[name]])
    assert row.shape == (1, COUNT)
    assert not np.isinf(row).any()


def renamed(posted, word):
    """With other ids everywhere, and without `extra`."""
    document = posted["trajectory"]
    steps = [
        {
            **step,
            "tool_calls": [{**call, "tool_call_id": f"{word}-{call['tool_call_id']}"} for call in step.get("tool_calls", ())] or None,
            "observation": {"results": [{**r, "source_call_id": f"{word}-{r['source_call_id']}"} for r in step["observation"]["results"]]}
            if "observation" in step
            else None,
        }
        for step in document["steps"]
    ]
    new = {"id": word, "environment": {"id": f"{word}/x", "version": word}, "task": {"id": word}, "run": {"id": word}, "group": {"id": word}}
    return {**posted, **new, "trajectory": {**document, "agent": {"name": word}, "steps": steps}}


@given(st.sampled_from(LINES), st.text("abcdefgh", min_size=1, max_size=9))
def test_names_do_not_matter(posted, word):
    with_extra = {**posted, "extra": {"note": word * 100}}
    assert np.array_equal(matrix([read(with_extra)]), matrix([read(renamed(posted, word))]), equal_nan=True)


@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=5))
def test_a_batch_gives_each_the_row_that_it_gets_alone(posted):
    together = matrix([read(one) for one in posted])
    alone = np.concatenate([matrix([read(one)]) for one in posted])
    assert np.array_equal(together, alone, equal_nan=True)


def test_steps_that_compaction_copied_are_not_counted():
    steps = envelope()["trajectory"]["steps"]
    copied = [*steps, *({**step, "step_id": at, "is_copied_context": True} for at, step in enumerate(steps, start=len(steps) + 1))]
    assert walk(trajectory(steps=copied))[:20] == walk(trajectory(steps=steps))[:20]


def test_reasoning_does_not_matter():
    thinking = [{**step, **({"reasoning_content": "Hm. " * 500} if step["source"] == "agent" else {})} for step in envelope()["trajectory"]["steps"]]
    assert np.array_equal(matrix([trajectory(steps=thinking)]), matrix([trajectory()]), equal_nan=True)


def test_not_scored_and_scored_zero_are_told_apart():
    unscored, zero = walk(trajectory(reward=None)), walk(trajectory(reward=0.0))
    assert (math.isnan(unscored.reward), unscored.unscored) == (True, True)
    assert (zero.reward, zero.unscored) == (0.0, False)


def test_hours_that_cannot_be_compared_are_no_pause():
    steps = envelope()["trajectory"]["steps"]
    mixed = [{**step, "timestamp": stamp} for step, stamp in zip(steps, ["2026-11-30T10:00:00", "2026-11-30T10:00:05Z", "soon"], strict=True)]
    assert math.isnan(walk(trajectory(steps=mixed)).longest_pause)
    even = [{**step, "timestamp": f"2026-11-30T10:00:{at * at:02}Z"} for at, step in enumerate(steps)]
    assert walk(trajectory(steps=even)).longest_pause == 3.0


def test_numbers_of_a_harness_that_are_none_are_missing():
    steps = envelope()["trajectory"]["steps"]
    wild = [{**step, "metrics": {"completion_tokens": "many", "prompt_tokens": -1}} for step in steps]
    assert math.isnan(walk(trajectory(steps=wild)).tokens_written)
    huge = [{**step, "metrics": {"completion_tokens": 10**30}} for step in steps]
    assert walk(trajectory(steps=huge)).tokens_written == 1e15


def sentence(name, posted, usual):
    [feature] = [feature for feature in FEATURES if feature.name == name]
    return told(feature, walk(posted), usual)


def test_a_feature_is_told_in_plain_words():
    assert sentence("turns", trajectory(), math.log1p(40)) == "turns of the agent: 2 (usually 40)"
    assert sentence("silent_turns", trajectory(), 0.0) == "turns without a tool call: 1 of 2 (usually 50%)"
    assert sentence("unscored", trajectory(reward=None), 0.0) == "without a reward: yes (usually no)"
    assert sentence("reward", trajectory(reward=-100.0), math.asinh(0.5)) == "reward: -100 (usually 0.5)"
    assert sentence("seen", trajectory(), math.log1p(123456)) == "text that came back from tools: 66 characters (usually 123,456)"


@pytest.mark.parametrize("name", ["longest_said", "last_said", "longest_done", "longest_seen", "asked"])
def test_a_feature_points_at_its_text(name):
    subject = trajectory()
    span = place_of(subject, name)
    assert span is not None
    assert text_at(subject, span)[span.start : span.end] == span.quote != ""


def test_a_feature_of_the_whole_points_nowhere():
    assert place_of(trajectory(), "turns") is None
    assert place_of(trajectory(steps=[]), "longest_said") is None
