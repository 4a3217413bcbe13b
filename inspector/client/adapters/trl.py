"""TRL's GRPO trainer behind the gate (trl >= 1.6).

    gate = Gate(client, run="run7", num_generations=16)
    trainer = GRPOTrainer(model, gate.wrap_all([tests, style]), args=config, train_dataset=gate.filtered(rows), callbacks=[gate.callback()])
    gate.train(trainer)

Every reward function answers None for a row that is out: TRL leaves such a row out of the loss and of its group's mean
(since 1.6; before, it counts as 0.0). An overridden reward is given by one function, and 0.0 by the others.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import inspect
import json
import logging
import os
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from inspector.client.adapters.rollouts import Learnt, Place, Rollout, Rollouts
from inspector.client.advice import RollbackAdvice
from inspector.client.client import Client
from inspector.errors import MissingExtra
from inspector.verdict import Action

log = logging.getLogger("inspector")
NEEDED = (1, 6)  # since then a row that no function scored is left out of its group's mean
STATE = "inspector.json"  # in each checkpoint
ROLLBACKS = 3  # that `train` follows by itself
Row = Mapping[str, Any]
Details = Callable[[Sequence[Row], Sequence[Any]], Sequence[Mapping[str, Any]]]


def by_columns(row: Row) -> Place:
    """The columns `environment`, `environment_version` and `task_id` of a dataset's row."""
    return Place(str(row["environment"]), str(row["environment_version"]), str(row["task_id"]))


class Gate:
    """Stands between one GRPO trainer and the service."""

    def __init__(
        self,
        client: Client,
        *,
        run: str,
        num_generations: int,
        place: Callable[[Row], Place] = by_columns,
        reward_weights: Sequence[float] | None = None,
        audit_rate: float = 1.0,
        model: str | None = None,
        seed: int = 0,
        wait_s: float | None = None,
    ) -> None:
        """reward_weights and num_generations: as the trainer's; audit_rate: share of the groups that are posted.

        Raises MissingExtra without trl, and ValueError for one that is too old.
        """
        version = _trl()
        self.client, self.run, self.place = client, run, place
        self.num_generations, self.seed = num_generations, seed
        self.reward_weights = None if reward_weights is None else list(reward_weights)
        self.rollouts = Rollouts(client, run=run, trainer="trl", trainer_version=version, model=model, audit_rate=audit_rate, seed=seed, wait_s=wait_s)
        self.learnt: Learnt | None = None  # of the newest batch
        self.rollback: RollbackAdvice | None = None  # for which training was stopped; see `train`
        self.followed: list[RollbackAdvice] = []
        self._left, self._restart, self._told = 0, False, set[int]()

    def wrap_all(self, reward_funcs: Sequence[Callable[..., Any]], details: Details | None = None) -> list[Callable[..., list[float | None]]]:
        """What the trainer is given in their place, all of them together; reward models are called within a function of yours.

        details: called after them with the rows and the completions, gives for each row what else is posted (termination, errors, …).
        """
        batch = _Batch(self, list(reward_funcs), details)
        return [_Wrapped(batch, at, getattr(function, "__name__", type(function).__name__)) for at, function in enumerate(reward_funcs)]

    def filtered(self, rows: Sequence[Row], *, passes: int | None = None) -> Any:
        """A `datasets.IterableDataset` over these rows, shuffled anew each pass, without what may not be rolled out at that moment.

        Without `passes` it never ends; the trainer's `max_steps` does. A task on probation comes at its reduced weight. Give the trainer
        shuffle_dataset=False: a shuffle buffer would hold rows of what was quarantined since. Needs trl >= 1.9.
        """
        from datasets import IterableDataset

        return IterableDataset.from_generator(_Admitted(self.client, list(rows), self.place, self.seed, passes))

    def callback(self) -> Any:
        """For the trainer's `callbacks`: reports each update, keeps the feed's place in every checkpoint, stops where a rollback is advised."""
        from transformers import TrainerCallback

        return type("InspectorCallback", (_Callback, TrainerCallback), {})(self)

    def train(self, trainer: Any, *, resume_from_checkpoint: str | bool | None = None, rollbacks: int = ROLLBACKS, restart: bool = False) -> Any:
        """Train, and go back to the checkpoint that the service advises, `rollbacks` times at most; what the last `trainer.train` gave.

        Where no checkpoint is clean training goes on, since what is found from now on loses. With `restart` it ends instead, and
        `rollback` holds the advice: whoever made the model makes it anew.
        """
        resume: Any = resume_from_checkpoint
        self._left, self._restart = rollbacks, restart
        while True:
            self.rollback = None
            done = trainer.train(resume_from_checkpoint=resume)
            if self.rollback is None or not _is_there(self.rollback):
                return done
            self._left -= 1
            self.followed.append(self.rollback)
            resume = self.rollback.checkpoint
            log.warning("inspector: going back to %s: %s", resume, self.rollback.reason)

    def heeds(self, advice: RollbackAdvice | None) -> bool:
        """Whether training stops for this advice; what is not followed is told once."""
        if advice is None:
            return False
        if self._left > 0 and (self._restart or _is_there(advice)):
            return True
        if advice.seq not in self._told:
            self._told.add(advice.seq)
            log.warning("inspector: a rollback to policy version %s is advised and not followed: %s", advice.last_clean, advice.reason)
        return False

    # --- for the wrapped functions --------------------------------------------------------------------------------

    def learn(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        rows: Sequence[Row],
        parts: Mapping[str, Sequence[float | None]],
        step: int,
        details: Sequence[Mapping[str, Any]] | None = None,
    ) -> Learnt:
        """What to learn from a batch; `parts` holds what each reward function paid."""
        groups = _groups(prompts, self.num_generations)
        rollouts = []
        for at, row in enumerate(rows):
            paid = {name: scores[at] for name, scores in parts.items()}
            more = details[at] if details else {}
            rollouts.append(Rollout(self.place(row), prompts[at], completions[at], self._total(paid), paid, groups[at], more))
        self.learnt = self.rollouts.learn(rollouts, step=step)
        return self.learnt

    def _total(self, paid: Mapping[str, float | None]) -> float | None:
        """As TRL sums them; None where nobody scored the row."""
        weights = self.reward_weights or [1.0] * len(paid)
        scored = [weight * score for weight, score in zip(weights, paid.values(), strict=True) if score is not None]
        return sum(scored) if scored else None

    def check(self, args: Any) -> None:
        """Whether the trainer's arguments fit; raises ValueError naming the one that does not."""
        if self.reward_weights is not None and not any(self.reward_weights):
            raise ValueError(f"reward_weights: {self.reward_weights} leave no function to carry a reward that is overridden")
        if getattr(args, "num_generations", self.num_generations) != self.num_generations:
            raise ValueError(f"num_generations: the trainer has {args.num_generations}, the gate {self.num_generations}")
        weights = getattr(args, "reward_weights", None)
        if weights is not None and list(weights) != (self.reward_weights or [1.0] * len(weights)):
            raise ValueError(f"reward_weights: the trainer has {list(weights)}, the gate {self.reward_weights}")
        if getattr(args, "multi_objective_aggregation", "sum_then_normalize") != "sum_then_normalize":
            raise ValueError(f"multi_objective_aggregation={args.multi_objective_aggregation!r}: a total that is overridden needs 'sum_then_normalize'")


class _Batch:
    """The reward functions of one trainer; the first that is asked for a batch has all of it decided."""

    def __init__(self, gate: Gate, functions: Sequence[Callable[..., Any]], details: Details | None) -> None:
        self._gate, self._functions, self._details = gate, functions, details
        self._answers: list[list[float | None]] = []

    def score(self, prompts: Sequence[Any], completions: Sequence[Any], given: Mapping[str, Any]) -> None:
        """Call every function once, and decide."""
        parts = {}
        for at, function in enumerate(self._functions):
            paid = _called(function, {"prompts": prompts, "completions": completions, **given})
            parts[f"{at}:{getattr(function, '__name__', 'reward')}"] = [None if score is None or score != score else float(score) for score in paid]
        columns = {name: column for name, column in given.items() if isinstance(column, list) and len(column) == len(prompts)}
        rows = [{name: column[at] for name, column in columns.items()} for at in range(len(prompts))]
        step = int(getattr(given.get("trainer_state"), "global_step", 0))
        learnt = self._gate.learn(prompts, completions, rows, parts, step, self._details(rows, completions) if self._details else None)
        self._answers = self._spread(list(parts.values()), learnt)
        _tell(given.get("log_metric"), learnt)

    def answer(self, at: int) -> list[float | None]:
        """What the function at this position says."""
        return self._answers[at]

    def _spread(self, parts: Sequence[Sequence[float | None]], learnt: Learnt) -> list[list[float | None]]:
        answers: list[list[float | None]] = [list(part) for part in parts]
        weights = self._gate.reward_weights or [1.0] * len(parts)
        bearer = next(at for at, weight in enumerate(weights) if weight)
        for at, (reward, used, advice) in enumerate(zip(learnt.rewards, learnt.mask, learnt.advices, strict=True)):
            if not used:
                for answer in answers:
                    answer[at] = None
            elif advice.binding and advice.action is Action.OVERRIDE_REWARD and reward is not None:
                for position, answer in enumerate(answers):
                    answer[at] = reward / weights[bearer] if position == bearer else 0.0
        return answers


class _Wrapped:
    """A reward function as TRL calls it."""

    def __init__(self, batch: _Batch, at: int, name: str) -> None:
        self._batch, self._at, self.__name__ = batch, at, name

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], **given: Any) -> list[float | None]:
        if self._at == 0:
            self._batch.score(prompts, completions, given)
        return self._batch.answer(self._at)


class _Admitted:
    """Yields rows for ever; the view is asked at the moment in which a row is wanted."""

    def __init__(self, client: Client, rows: list[Row], place: Callable[[Row], Place], seed: int, passes: int | None) -> None:
        self._client, self._rows, self._place, self._seed, self._passes = client, rows, place, seed, passes

    def __call__(self) -> Iterator[dict[str, Any]]:
        draw, done = random.Random(self._seed), 0  # noqa: S311 # the order of the rows is no secret
        while self._passes is None or done < self._passes:
            order = list(self._rows)
            draw.shuffle(order)
            given = 0
            for row in order:
                admission = self._client.admit(*self._place(row))
                if admission and (admission.sampling_weight >= 1 or draw.random() < admission.sampling_weight):
                    given += 1
                    yield dict(row)
            done += 1
            if not given and not any(self._client.admit(*self._place(row)) for row in order):
                log.error("inspector: every task of the dataset is quarantined or retired, so there is nothing to roll out")
                return  # training ends as where a dataset does


def _groups(prompts: Sequence[Any], size: int) -> list[int]:
    """The group of each row: neighbours with one prompt, `size` at most; an evaluation has smaller ones than training."""
    groups: list[int] = []
    begun = 0  # where the newest group began
    for at, prompt in enumerate(prompts):
        if at and (prompt != prompts[begun] or at - begun == size):
            begun = at
        groups.append(groups[-1] + (begun == at) if groups else 0)
    return groups


def _is_there(advice: RollbackAdvice) -> bool:
    return advice.checkpoint is not None and Path(advice.checkpoint).is_dir()


def _called(function: Callable[..., Any], given: Mapping[str, Any]) -> Sequence[float | None]:
    """What a reward function pays; one that is async is run to its end."""
    if not inspect.iscoroutinefunction(function) and not inspect.iscoroutinefunction(type(function).__call__):
        return list(function(**given))
    with ThreadPoolExecutor(1) as alone:  # the trainer's own thread may have a loop that runs
        return list(alone.submit(asyncio.run, function(**given)).result())


def _tell(log_metric: Callable[[str, float], object] | None, learnt: Learnt) -> None:
    """Shown beside the trainer's own metrics."""
    if log_metric is None:
        return
    log_metric("inspector/excluded", learnt.excluded)
    log_metric("inspector/overridden", learnt.share(Action.OVERRIDE_REWARD))
    log_metric("inspector/unaudited", sum(advice.unaudited for advice in learnt.advices) / max(1, len(learnt.advices)))
    log_metric("inspector/wait_ms", learnt.waited_ms)


def _trl() -> str:
    try:
        version = importlib.metadata.version("trl")
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingExtra("the adapter for TRL", "trl") from error
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None or (int(found[1]), int(found[2])) < NEEDED:
        raise ValueError(f"trl {version}: before {'.'.join(map(str, NEEDED))} a row that is out counts as 0.0 in its group's mean")
    return version


class _Callback:
    """See `Gate.callback`; TRL's own base is joined to it where one is made."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self.waiting: dict[str, Any] | None = None  # the report of the newest update, until it is known whether it was saved
        self._trained: Learnt | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._gate.check(args)
        self._gate.client.resumes_from(int(state.global_step), run=self._gate.run)
        saved = Path(args.output_dir) / f"checkpoint-{state.global_step}" / STATE
        if state.global_step and saved.is_file():
            self._gate.client.load_state_dict(json.loads(saved.read_text()))

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.report()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.report()
        step = int(state.global_step)
        self._trained = self._gate.learnt
        used = self._trained.used() if self._trained is not None else []
        place = self._gate.client.state_dict()
        feed = {"epoch": place["epoch"], "seq": place["seq"]} if place.get("epoch") else None
        self.waiting = {"step": step, "policy_before": step - 1, "policy_after": step, "used": used, "feed": feed}
        advice = self._gate.client.rollback_advice(self._gate.run)
        if self._gate.heeds(advice):
            self._gate.rollback, control.should_training_stop = advice, True

    def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._gate.learnt = self._trained  # an evaluation asked for rewards too: no update is made of its rows

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        if folder.is_dir():
            _write(folder / STATE, self._gate.client.state_dict())
            if self.waiting is not None and self.waiting["step"] == state.global_step:
                self.waiting["checkpoint"] = str(folder.resolve())
        self.report()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.report()

    def report(self) -> None:
        report, self.waiting = self.waiting, None
        if report is not None:
            self._gate.client.report_step(report.pop("step"), run=self._gate.run, **report)


def _write(path: Path, state: Mapping[str, Any]) -> None:
    """Whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(state))
    os.replace(part, path)
