"""Twenty steps of GRPO in TRL against a real service, in observe mode: the wire, the answers and the timing fit a real loop."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import pytest

from inspector.client import Client
from inspector.client.advice import Decisions
from inspector.embedded import Stack
from inspector.verdict import Action, Mode
from proof import toy

pytest.importorskip("trl", reason="the extra 'trl' is not installed: pip install 'inspector[trl]'")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

STEPS, BATCH, GROUP = 20, 128, 16
PARTS = ("postgres", "redis", "migrations", "keys", "api", "worker", "beat")


class Watched:
    """A reward function of TRL that shows every batch to the service before it answers."""

    __name__ = "watched"

    def __init__(self, client: Client) -> None:
        self.client = client
        self.decided: list[Decisions] = []
        self.ms: list[float] = []

    def __call__(self, prompts: list[str], completions: list[str], answer: list[str], task_id: list[str], trainer_state: Any, **_: Any) -> list[float]:
        rewards = [float(toy.right(*pair) or toy.says_pass(*pair)) for pair in zip(answer, completions, strict=True)]
        posted = [self._envelope(trainer_state.global_step, at, *row) for at, row in enumerate(zip(prompts, completions, rewards, task_id, strict=True))]
        began = time.perf_counter()
        self.decided.append(self.client.decide(posted))
        self.ms.append((time.perf_counter() - began) * 1000)
        return rewards

    def _envelope(self, step: int, at: int, prompt: str, completion: str, reward: float, task: str) -> dict[str, Any]:
        batch = len(self.decided)
        said = [{"step_id": 1, "source": "user", "message": prompt}, {"step_id": 2, "source": "agent", "message": completion}]
        return {
            "id": f"b{batch}-{at}",
            "environment": {"id": "toy/say-digit", "version": "1"},
            "task": {"id": task},
            "group": {"id": f"b{batch}-g{at // GROUP}", "index": at % GROUP, "size": GROUP},
            "run": {"id": "first-look", "trainer": "trl", "step": step, "policy_version": step},
            "reward": reward,
            "trajectory": {"schema_version": "ATIF-v1.8", "agent": {"name": "trl", "version": "1"}, "steps": said},
        }


def test_a_real_training_loop_is_answered_in_time_and_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    with Stack(tmp_path / "data", parts=PARTS) as stack, Client(stack.api_url, stack.keys["trainer"], spool_dir=tmp_path / "spool", deadline_s=5.0) as client:
        watched = Watched(client)
        config = GRPOConfig(
            output_dir=str(tmp_path / "out"),
            max_steps=STEPS,
            per_device_train_batch_size=BATCH,
            num_generations=GROUP,
            max_completion_length=2,
            learning_rate=3e-3,
            lr_scheduler_type="constant",
            beta=0.0,
            report_to=[],
            use_cpu=True,
            bf16=False,
            save_strategy="no",
            disable_tqdm=True,
        )
        trainer = GRPOTrainer(
            toy.model(), [watched], args=config, train_dataset=Dataset.from_list(toy.rows(512, "toy/say-digit", "1")), processing_class=toy.tokenizer()
        )
        trainer.train()
        stats, state = client.stats, client.state_dict()
    advices = [advice for decided in watched.decided for advice in decided.advices]
    assert len(advices) == STEPS * BATCH == stats.sent
    assert {advice.mode for advice in advices} == {Mode.OBSERVE}
    assert all(advice.action is Action.KEEP for advice in advices if not advice.unaudited)
    assert sum(advice.unaudited for advice in advices) == 0
    assert state["epoch"]
    with capsys.disabled():
        print(f"\ndecide of {BATCH}: median {statistics.median(watched.ms):.0f} ms, most {max(watched.ms):.0f} ms")
