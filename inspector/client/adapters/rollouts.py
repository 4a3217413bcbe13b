"""From a batch of rollouts to what is posted of it and to what a trainer learns from; no framework is imported here."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from inspector.client.advice import Admission, Advice
from inspector.client.apply import apply
from inspector.client.client import Client
from inspector.formats.openai_chat import document
from inspector.verdict import Action


class Place(NamedTuple):
    """Where a rollout was made."""

    environment: str
    version: str
    task: str


class Rollout(NamedTuple):
    """One row of a batch; prompt and completion are texts, or chat messages."""

    place: Place
    prompt: Any
    completion: Any
    reward: float | None  # the total that the advantage would be computed from; None was not scored
    rewards: Mapping[str, float | None]
    group: int  # rows of one group have one number
    details: Mapping[str, Any] = {}  # more fields of what is posted: termination, errors, verifier, seed …


class Learnt(NamedTuple):
    """What a batch is learnt from; all aligned with its rows."""

    rewards: list[float | None]  # None where the row is out of the loss and of its group's baseline, or was not scored
    mask: list[bool]  # False: out
    advices: list[Advice]
    ids: list[str]
    waited_ms: float  # for the service

    def share(self, action: Action) -> float:
        """Of the rows that got this advice, bound or not."""
        return sum(advice.action is action for advice in self.advices) / max(1, len(self.advices))

    @property
    def excluded(self) -> float:
        """Share of the rows that are out."""
        return self.mask.count(False) / max(1, len(self.mask))

    def used(self) -> list[dict[str, Any]]:
        """What a report of the update says was used."""
        rows = zip(self.ids, self.rewards, self.mask, strict=True)
        return [{"id": id_, "weight": 1.0, "reward": reward} for id_, reward, used in rows if used and reward is not None]


class Rollouts:
    """Posts batches and applies what comes back."""

    def __init__(
        self,
        client: Client,
        *,
        run: str,
        trainer: str,
        trainer_version: str,
        model: str | None = None,
        audit_rate: float = 1.0,
        seed: int = 0,
        wait_s: float | None = None,
        work: str = "train",
    ) -> None:
        """audit_rate: share of the groups that are posted, where the service does not ask for more; raises ValueError outside (0, 1]."""
        if not 0 < audit_rate <= 1:
            raise ValueError(f"audit_rate={audit_rate!r} must lie above 0 and be at most 1")
        self.client, self.run = client, run
        self._trainer, self._version, self._model = trainer, trainer_version, model
        self._audit_rate, self._draw, self._wait_s, self._work = audit_rate, random.Random(seed), wait_s, work  # noqa: S311 # which rows are looked at is no secret
        self._life = uuid.uuid4().hex[:8]  # a resumed run makes other rollouts at the steps that it repeats
        self._batches = 0

    def learn(self, rollouts: Sequence[Rollout], *, step: int) -> Learnt:
        """What to learn from these, made by policy version `step`. Waits at most for the client's deadline, and raises nothing for what the service does."""
        began = time.perf_counter()
        self._batches += 1
        prefix = f"{self.run}-{step}-{self._life}.{self._batches}"
        ids = [f"{prefix}-{at}" for at in range(len(rollouts))]
        admitted = {place: self.client.admit(*place) for place in dict.fromkeys(rollout.place for rollout in rollouts)}
        rates = self._rates(rollouts, admitted)
        drawn = {group for group, rate in rates.items() if rate >= 1 or self._draw.random() < rate}
        posted = [at for at, rollout in enumerate(rollouts) if rollout.group in drawn]
        members = _Members(rollouts)
        envelopes = [self._envelope(ids[at], rollouts[at], rates[rollouts[at].group], step, members.of(at, prefix)) for at in posted]
        decided = self.client.decide(envelopes, self._wait_s).advices if envelopes else ()
        advices = [Advice(id=id_, unaudited=True, reason="it was not drawn for an audit") for id_ in ids]
        for at, advice in zip(posted, decided, strict=True):
            advices[at] = advice
        rewards, mask = apply(advices, [rollout.reward for rollout in rollouts], [rollout.group for rollout in rollouts])
        for at, rollout in enumerate(rollouts):
            if not admitted[rollout.place]:  # it was sampled before its task was quarantined
                rewards[at], mask[at] = None, False
        return Learnt(rewards, mask, advices, ids, 1000 * (time.perf_counter() - began))

    def _rates(self, rollouts: Sequence[Rollout], admitted: Mapping[Place, Admission]) -> dict[int, float]:
        """Whole groups are audited or not; what the service wants to see more of is posted more often."""
        rates: dict[int, float] = {}
        for rollout in rollouts:
            rates[rollout.group] = max(rates.get(rollout.group, self._audit_rate), admitted[rollout.place].audit_rate)
        return rates

    def _envelope(self, id_: str, rollout: Rollout, rate: float, step: int, group: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "id": id_,
            "environment": {"id": rollout.place.environment, "version": rollout.place.version},
            "task": {"id": rollout.place.task},
            "group": group,
            "run": {"id": self.run, "trainer": self._trainer, "work": self._work, "step": step, "policy_version": step},
            "reward": rollout.reward,
            "rewards": {name: None if score is None else {"score": score} for name, score in rollout.rewards.items()},
            "sampled": None if rate >= 1 else rate,
            **rollout.details,
            "trajectory": document(rollout.prompt, rollout.completion, agent=f"{self._trainer} {self._version}", model=self._model),
        }


class _Members:
    """Numbers the rows of each group."""

    def __init__(self, rollouts: Sequence[Rollout]) -> None:
        seen: dict[int, int] = {}
        self._place = []
        for rollout in rollouts:
            at = seen.get(rollout.group, 0)
            seen[rollout.group] = at + 1
            self._place.append((rollout.group, at))
        self._sizes = seen

    def of(self, at: int, prefix: str) -> dict[str, Any]:
        """The group of the row at this position, as it is posted."""
        group, index = self._place[at]
        return {"id": f"{prefix}-g{group}", "index": index, "size": self._sizes[group]}
