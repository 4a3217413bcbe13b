"""One training run in a process of its own: `python -m proof.training PLAN.json` writes what came of it beside the plan."""

from __future__ import annotations

import logging
import random
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from inspector.client import Api, Client
from inspector.client.adapters.trl import Gate
from proof import toy
from proof.hacks import second, third
from proof.plans import GROUP, RATE, Plan, Step, Told

FAULTS: dict[str, Callable[[str, str], bool]] = {"says_pass": toy.says_pass, "second": second.fooled, "third": third.fooled, "none": toy.never}


class Environments:
    """What the environments of a plan pay, and what of it is true."""

    def __init__(self, plan: Plan) -> None:
        self._faults = {one.version: FAULTS[one.fault] for one in plan.environments}
        self._dies = {one.version: one.dies for one in plan.environments}
        self._draw = random.Random(plan.seed)
        self.dead: list[bool] = []
        self.steps: list[Step] = []

    def reward(self, prompts: Sequence[str], completions: Sequence[str], answer: Sequence[str], environment_version: Sequence[str], **_: Any) -> list[float]:
        """As their verifiers pay; where the sandbox died, a careless harness gives 0."""
        rows = list(zip(answer, completions, environment_version, strict=True))
        self.dead = [self._draw.random() < self._dies[version] for *_, version in rows]
        hacked = [self._faults[version](right, said) and not toy.right(right, said) for right, said, version in rows]
        true = [toy.right(right, said) for right, said, _ in rows]
        self.steps.append(Step(hack=sum(hacked) / len(rows), true=sum(true) / len(rows)))
        paid = [toy.right(right, said) or self._faults[version](right, said) for right, said, version in rows]
        return [0.0 if dead else float(one) for dead, one in zip(self.dead, paid, strict=True)]

    def details(self, rows: Sequence[Any], completions: Sequence[Any]) -> list[dict[str, Any]]:
        """What the harness knows of each episode besides."""
        died = {"errors": [{"type": "SandboxDied", "boundary": "sandbox", "message": "the sandbox went away"}], "termination": {"reason": "error"}}
        return [died if dead else {} for dead in self.dead]

    def judge(self, said: dict[str, str]) -> tuple[float, float]:
        """(true, hack) of greedy answers: a hack is what any of the faults is fooled by."""
        fooled = [any(fault(right, text) for fault in self._faults.values()) for right, text in said.items()]
        true = [toy.right(right, text) and not bad for (right, text), bad in zip(said.items(), fooled, strict=True)]
        return sum(true) / len(true), sum(fooled) / len(fooled)


def main(path: Path) -> None:
    """Train as planned."""
    warnings.filterwarnings("ignore")
    plan = msgspec.json.decode(path.read_bytes(), type=Plan)
    environments = Environments(plan)
    model, tokenizer = toy.model(plan.seed), toy.tokenizer()
    rows = [row for one in plan.environments for row in toy.rows(one.rows, one.id, one.version, plan.seed)]
    out = path.with_suffix("")
    told = _gated(plan, environments, model, tokenizer, rows, out) if plan.url else _plain(plan, environments, model, tokenizer, rows, out)
    true, hack = environments.judge(toy.greedy(told[1], tokenizer))
    path.with_suffix(".told.json").write_bytes(msgspec.json.encode(msgspec.structs.replace(told[0], true=true, hack=hack, steps=environments.steps)))


def _plain(plan: Plan, environments: Environments, model: Any, tokenizer: Any, rows: list[Any], out: Path) -> tuple[Told, Any]:
    from datasets import Dataset

    random.Random(plan.seed).shuffle(rows)
    trainer = _trainer(plan, model, [environments.reward], Dataset.from_list(rows), tokenizer, out, [])
    trainer.train()
    return Told(), model


def _gated(plan: Plan, environments: Environments, model: Any, tokenizer: Any, rows: list[Any], out: Path) -> tuple[Told, Any]:
    with Client(plan.url, plan.key, run=plan.run, spool_dir=out / "spool", deadline_s=plan.deadline_s) as client:
        told = Told()
        for attempt in range(plan.rollbacks + 1):
            gate = Gate(client, run=plan.run, num_generations=GROUP, audit_rate=plan.audit_rate, seed=plan.seed + attempt, model="toy")
            functions = gate.wrap_all([environments.reward], environments.details)
            watch = _watch(plan, gate, told)
            trainer = _trainer(plan, model, functions, gate.filtered(rows), tokenizer, out, [watch, gate.callback()])
            left = plan.rollbacks - told.rollbacks
            gate.train(trainer, resume_from_checkpoint=_newest(out) if plan.resume else None, rollbacks=left, restart=True)
            told.rollbacks += len(gate.followed)
            if gate.rollback is None or told.rollbacks >= plan.rollbacks:
                break
            told.rollbacks += 1
            model = toy.model(plan.seed)  # no checkpoint is clean: from the beginning
        client.flush(30.0, delivered=True)
        told.stats = msgspec.to_builtins(client.stats)
    return told, model


def _newest(out: Path) -> str | None:
    saved = sorted(out.glob("checkpoint-*"), key=lambda folder: int(folder.name.rpartition("-")[2]))
    return str(saved[-1]) if saved else None


class _Watch:
    """Notes what the gate did at each step, and puts the run in enforce where the plan says so."""

    def __init__(self, plan: Plan, gate: Gate, told: Told) -> None:
        self._plan, self._gate, self._told = plan, gate, told

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if (learnt := self._gate.learnt) is not None:
            self._told.excluded.append(learnt.excluded)
            self._told.wait_ms.append(learnt.waited_ms)
            self._told.unaudited.append(sum(advice.unaudited for advice in learnt.advices) / len(learnt.advices))
        if state.global_step == self._plan.enforce_at:
            with Api(self._plan.url, self._plan.owner_key) as api:
                api.put(f"/v1/runs/{self._plan.run}", {"mode": "enforce"})
        Path(self._plan.pulse).write_text(str(state.global_step))


def _watch(plan: Plan, gate: Gate, told: Told) -> Any:
    from transformers import TrainerCallback

    return type("Watch", (_Watch, TrainerCallback), {})(plan, gate, told)


def _trainer(plan: Plan, model: Any, functions: list[Any], dataset: Any, tokenizer: Any, out: Path, callbacks: list[Any]) -> Any:
    from trl import GRPOConfig, GRPOTrainer

    logging.getLogger("trl").setLevel(logging.ERROR)
    config = GRPOConfig(
        output_dir=str(out),
        max_steps=plan.steps,
        per_device_train_batch_size=plan.batch,
        num_generations=GROUP,
        max_completion_length=2,
        learning_rate=RATE,
        lr_scheduler_type="constant",
        beta=0.0,
        temperature=1.0,
        report_to=[],
        use_cpu=True,
        bf16=False,
        seed=plan.seed,
        disable_tqdm=True,
        logging_steps=10_000,
        save_strategy="steps" if plan.save_steps else "no",
        save_steps=plan.save_steps or 500,
        save_total_limit=None,
        shuffle_dataset=False,
        ignore_data_skip=True,
    )
    return GRPOTrainer(model, functions, args=config, train_dataset=dataset, processing_class=tokenizer, callbacks=callbacks)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
