"""TRL's own code behind the gate: what is out moves nobody's advantage, and what is quarantined is rolled out no more."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inspector.client.adapters.rollouts import Learnt
from inspector.client.advice import Advice
from inspector.verdict import Action, Mode
from proof import toy
from tests.client.conftest import until

pytest.importorskip("trl", reason="the extra 'trl' is not installed: pip install 'inspector[trl]'")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

GROUP = 8


def config(folder: Path, **fields: Any) -> Any:
    from trl import GRPOConfig

    made = {
        "output_dir": str(folder),
        "per_device_train_batch_size": 2 * GROUP,
        "num_generations": GROUP,
        "max_completion_length": 2,
        "report_to": [],
        "use_cpu": True,
        "bf16": False,
        "save_strategy": "no",
        "disable_tqdm": True,
        "shuffle_dataset": False,
        "max_steps": 1,
    }
    return GRPOConfig(**(made | fields))


def trainer(args: Any, functions: list[Any], dataset: Any, callbacks: list[Any]) -> Any:
    from trl import GRPOTrainer

    return GRPOTrainer(toy.model(), functions, args=args, train_dataset=dataset, processing_class=toy.tokenizer(), callbacks=callbacks)


def gate(of: Any, **options: Any) -> Any:
    from inspector.client.adapters.trl import Gate

    return Gate(of, run="run7", num_generations=GROUP, **options)


PAID = [1.0, 0.0, 0.25, 1.0, 0.0, 0.5, 1.0, 0.0]
OUT = {0, 3}


def test_excluded_rows_leave_the_mean_of_their_group_unchanged(client, service, tmp_path):
    service.run_modes["run7"] = "enforce"
    service.rule = lambda line: {"action": "exclude" if line["group"]["index"] in OUT else "keep", "final": True}
    one = gate(client(run="run7", deadline_s=10.0))
    functions = one.wrap_all([lambda completions, **_: PAID * (len(completions) // GROUP)])
    made = trainer(config(tmp_path), functions, one.filtered(toy.rows(16, "toy/say", "1")), [one.callback()])
    made.train()
    advantages = list(made._logs["advantages"])[:GROUP]
    left = [reward for at, reward in enumerate(PAID) if at not in OUT]
    mean = sum(left) / len(left)
    spread = (sum((reward - mean) ** 2 for reward in left) / (len(left) - 1)) ** 0.5
    expected = [0.0 if at in OUT else (reward - mean) / (spread + 1e-4) for at, reward in enumerate(PAID)]
    assert advantages == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(("weights", "total"), [([0.5, 2.0], 1.0), ([0.0, 2.0], 0.5)], ids=["both count", "the first counts for nothing"])
def test_an_overridden_total_is_what_trl_sums(client, service, tmp_path, weights, total):
    service.run_modes["run7"] = "enforce"
    service.rule = lambda line: {"action": "override_reward", "reward_override": -1.0, "final": True} if line["group"]["index"] == 0 else {"action": "keep"}
    one = gate(client(run="run7", deadline_s=10.0), reward_weights=weights)

    def tests(completions: list[str], **_: Any) -> list[float]:
        return [1.0] * len(completions)

    def style(completions: list[str], **_: Any) -> list[float]:
        return [0.25] * len(completions)

    functions = one.wrap_all([tests, style])
    made = trainer(config(tmp_path, reward_weights=weights), functions, one.filtered(toy.rows(16, "toy/say", "1")), [one.callback()])
    made.train()
    rewards = list(made._logs["rewards"].values())
    totals = [weights[0] * first + weights[1] * second for first, second in zip(*rewards, strict=True)]
    assert totals[:GROUP] == [-1.0] + [total] * (GROUP - 1)


def test_what_is_quarantined_is_not_rolled_out_from_the_next_row_on(client, service):
    service.run_modes["run7"] = "enforce"
    one = gate(client(run="run7"))
    one.client.decide([])
    one.client._ensure()
    until(lambda: one.client.view.epoch)
    one.client.submit([{"id": "x", "environment": {"id": "toy/say", "version": "1"}, "task": {"id": "say-1"}, "run": {"id": "run7"}, "reward": 0.0,
                        "trajectory": {"schema_version": "ATIF-v1.8", "steps": []}}])  # fmt: skip
    until(lambda: service.order)
    rows = iter(one.filtered(toy.rows(64, "toy/say", "1")))
    assert {next(rows)["task_id"] for _ in range(64)} > {"say-1"}
    service.log(scope="task", action="set_state", environment="toy/say", version="1", task="say-1", state="quarantined")
    until(lambda: not one.client.admit("toy/say", "1", "say-1"))
    assert "say-1" not in {next(rows)["task_id"] for _ in range(128)}


def test_each_checkpoint_keeps_the_place_in_the_feed_and_each_update_is_reported(client, service, tmp_path):
    one = gate(client(run="run7", deadline_s=10.0))
    functions = one.wrap_all([lambda completions, **_: PAID * (len(completions) // GROUP)])
    args = config(tmp_path, max_steps=3, save_strategy="steps", save_steps=2)
    trainer(args, functions, one.filtered(toy.rows(16, "toy/say", "1")), [one.callback()]).train()
    assert json.loads((tmp_path / "checkpoint-2" / "inspector.json").read_text())["epoch"] == "e1"
    until(lambda: len(service.steps) == 3)
    assert [(step, body["policy_before"], len(body["used"])) for _, step, body in service.steps] == [(1, 0, 16), (2, 1, 16), (3, 2, 16)]
    assert service.steps[1][2]["checkpoint"] == str((tmp_path / "checkpoint-2").resolve())


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"num_generations": 4}, "num_generations"),
        ({"reward_weights": [2.0]}, "reward_weights"),
        ({"multi_objective_aggregation": "normalize_then_sum"}, "sum_then_normalize"),
    ],
)
def test_arguments_that_do_not_fit_are_named_before_anything_is_trained(client, fields, complaint):
    with pytest.raises(ValueError, match=complaint):
        gate(client(run="run7")).check(SimpleNamespace(**fields))


def test_neighbours_with_one_prompt_are_a_group_and_no_group_is_too_large():
    from inspector.client.adapters.trl import _groups

    assert _groups(["a"] * 4 + ["b"] * 2, 2) == [0, 0, 1, 1, 2, 2]
    assert _groups(["a", "b", "b", "a"], 8) == [0, 1, 1, 2]
    assert _groups([], 2) == []


def test_weights_that_bear_no_reward_are_refused(client):
    with pytest.raises(ValueError, match="reward_weights"):
        gate(client(run="run7"), reward_weights=[0.0, 0.0]).check(SimpleNamespace())


def test_async_functions_are_awaited_and_missing_scores_stay_missing(client, service):
    async def slow(completions: list[str], **_: Any) -> list[float | None]:
        return [None, float("nan"), 1.0, 0.0] * (len(completions) // 4)

    one = gate(client(run="run7", deadline_s=10.0))
    [wrapped] = one.wrap_all([slow])
    said = wrapped(["p"] * GROUP, ["c"] * GROUP, environment=["toy/say"] * GROUP, environment_version=["1"] * GROUP, task_id=["t"] * GROUP)
    assert said == [None, None, 1.0, 0.0] * 2
    assert isinstance(one.learnt, Learnt)
    assert one.learnt.advices[0] == Advice(id=one.learnt.ids[0], final=True, mode=Mode.OBSERVE, group=one.learnt.advices[0].group, action=Action.KEEP)
