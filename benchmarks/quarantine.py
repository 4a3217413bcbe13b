"""How soon sick environments are quarantined and how rarely healthy ones, on seeded fleets: `python -m benchmarks.quarantine [streams]`.

Every stream goes through the product's own machine. Beside it, on the same episodes, goes the rule that was not chosen:
the posterior P(d > 0.05) >= 0.95 under Beta(0.5, 12) with forgetting 0.98.
"""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from scipy.special import betaincc

from inspector.standing import CLEAN, DEFAULT, Evidence, Now, Seen, decide, fleet
from inspector.standing.evidence import counts_for_version
from inspector.task import State

BEGIN = datetime(2026, 12, 1, tzinfo=UTC)
DEFECT = Seen(defect=True)
TASKS, GROUP = 50, 8
LONG = 1000  # episodes of a stream
SHORT = 500  # of one that is sick
HISTORY = 300  # clean episodes before an environment turns bad


class Life(NamedTuple):
    """One stream."""

    quarantined_at: int | None  # episodes until the first quarantine
    quarantines: int
    switches: int  # into quarantine and out of it; of the other rule, which has no way out, none
    watches: int


class Version:
    """One environment version with its tasks, as the service keeps it."""

    def __init__(self) -> None:
        self.now, self.evidence = Now(), Evidence()
        self.tasks = [Evidence() for _ in range(TASKS)]

    def see(self, task: int, seen: Seen) -> None:
        self.tasks[task].add(seen)
        if counts_for_version(self.tasks[task], seen):
            self.evidence.add(seen)

    def move(self, bar: float | None = None) -> State | None:
        """The state that it goes to, if it moves."""
        move = decide(self.now, self.evidence, BEGIN, tasks=TASKS, bar=bar)
        if move is None:
            return None
        self.now = Now(move.after, move.why, BEGIN)
        if move.after is not State.WATCH:
            self.evidence = Evidence()
            for task in self.tasks:
                task.told = 0
        return move.after


def episodes(rng: random.Random, rate: float, count: int) -> Iterator[tuple[int, Seen]]:
    """Groups of one task each."""
    for at in range(count):
        yield at // GROUP % TASKS, DEFECT if rng.random() < rate else CLEAN


def live(seed: int, rate: float, history: int = 0, length: int = LONG) -> Life:
    rng, version = random.Random(seed), Version()
    for task, seen in episodes(rng, 0.01, history):
        version.see(task, seen)
    first, quarantines, switches, watches = None, 0, 0, 0
    for at, (task, seen) in enumerate(episodes(rng, rate, length), 1):
        before = version.now.state
        version.see(task, seen)
        after = version.move()
        quarantines += after is State.QUARANTINED
        watches += after is State.WATCH
        switches += after is State.QUARANTINED or (after is not None and before is State.QUARANTINED)
        if after is State.QUARANTINED and first is None:
            first = at
    return Life(first, quarantines, switches, watches)


def posterior(seed: int, rate: float, history: int = 0, length: int = LONG) -> Life:
    """The other rule, begun anew at each quarantine."""
    rng = random.Random(seed)
    bad = good = 0.0
    first, quarantines = None, 0
    for _, seen in episodes(rng, 0.01, history):
        bad, good = bad * 0.98 + seen.defect, good * 0.98 + (not seen.defect)
    for at, (_, seen) in enumerate(episodes(rng, rate, length), 1):
        bad, good = bad * 0.98 + seen.defect, good * 0.98 + (not seen.defect)
        if seen.defect and betaincc(0.5 + bad, 12 + good, 0.05) >= 0.95:
            quarantines, first, bad, good = quarantines + 1, first or at, 0.0, 0.0
    return Life(first, quarantines, 0, 0)


Rule = Callable[..., Life]


class Seen1000(NamedTuple):
    """Of healthy streams."""

    per_1000: float  # false quarantines in 1,000 audited episodes
    watches: float  # a stream
    switches: float


def healthy(rule: Rule, rate: float, streams: int) -> Seen1000:
    lives = [rule(seed, rate) for seed in range(streams)]
    return Seen1000(*(sum(counts) / streams * 1000 / LONG for counts in zip(*((life.quarantines, life.watches, life.switches) for life in lives), strict=True)))


class Delay(NamedTuple):
    """Of sick streams: episodes until the quarantine."""

    median: float
    late: float  # the 95th percentile
    missed: float  # share that was not quarantined within the stream
    switches: float


def sick(rule: Rule, rate: float, streams: int, history: int = 0) -> Delay:
    lives = [rule(seed, rate, history, SHORT) for seed in range(streams)]
    found = sorted(life.quarantined_at or SHORT for life in lives)
    missed = sum(life.quarantined_at is None for life in lives) / streams
    return Delay(statistics.median(found), found[int(0.95 * len(found))], missed, sum(life.switches for life in lives) / streams)


class Fleet(NamedTuple):
    """What an installation did in a day."""

    worst_share: float  # of the training weight, quarantined by the machine within any hour beyond that hour's one version
    quarantined: int
    sick_quarantined: int
    asked: int


def installation(seed: int, versions: int = 60, sick_ones: int = 30, hours: int = 24) -> Fleet:
    """Half of a fleet breaks in the third hour; each hour every version that trains posts by its weight, and is looked at after each group."""
    rng = random.Random(seed)
    fleet_of = [Version() for _ in range(versions)]
    weights = [rng.choice([8, 16, 64]) for _ in range(versions)]
    ill = set(rng.sample(range(versions), sick_ones))
    acts: list[tuple[datetime, float]] = []
    worst, asked = 0.0, set()
    for minute in range(0, hours * 60, 10):
        at = BEGIN + timedelta(minutes=minute)
        for number in rng.sample(range(versions), versions):
            one = fleet_of[number]
            if one.now.state is State.QUARANTINED:
                continue
            rate = 0.3 if number in ill and minute >= 180 else 0.01
            for task, seen in episodes(rng, rate, weights[number]):
                one.see((task + minute) % TASKS, seen)
            bar = fleet.bar([other.evidence.score for other in fleet_of if other.now.state in (State.ACTIVE, State.WATCH)])
            move = decide(one.now, one.evidence, at, tasks=TASKS, bar=bar)
            if move is not None and move.after is State.QUARANTINED:
                recent = [share for then, share in acts if at - then < timedelta(hours=1)]
                posted = float(sum(w for w, other in zip(weights, fleet_of, strict=True) if other.now.state is not State.QUARANTINED) * 6)
                hour = fleet.Hour(posted, len(recent), sum(recent))
                if not fleet.allows(hour, weights[number] * 6.0):
                    asked.add(number)
                    continue
                acts.append((at, fleet.share(hour, weights[number] * 6.0)))
                if recent:
                    worst = max(worst, sum(recent) + acts[-1][1])
            one.move(bar)
    gone = {number for number, one in enumerate(fleet_of) if one.now.state is State.QUARANTINED}
    return Fleet(worst, len(gone), len(gone & ill), len(asked))


def main(streams: int) -> None:
    for name, rule in (("machine", live), ("posterior", posterior)):
        for rate in (0.0, 0.01, 0.03):
            seen = healthy(rule, rate, streams)
            print(
                f"{name}, {rate:g}: in 1,000 episodes {seen.per_1000:.3f} false quarantines, {seen.switches:.3f} switches, {seen.watches:.2f} watches",
                flush=True,
            )
        for history in (0, HISTORY):
            for rate in (0.1, 0.2, 0.4):
                delay = sick(rule, rate, streams, history)
                found = f"quarantined after {delay.median:.0f} (95 %: {delay.late:.0f}), {delay.missed:.1%} missed, {delay.switches:.2f} switches in {SHORT}"
                print(f"{name}, {rate:g} after {history} healthy ones: {found}", flush=True)
    runs = [installation(seed) for seed in range(10)]
    sick_ones, healthy_ones, asked = (
        sum(told) / len(runs) for told in zip(*((r.sick_quarantined, r.quarantined - r.sick_quarantined, r.asked) for r in runs), strict=True)
    )
    worst = max(run.worst_share for run in runs)
    print(f"fleets: {worst:.3f} of the weight within an hour at most (allowed: {DEFAULT.fleet_share:g}), beside single versions;", end=" ")
    print(f"in a day {sick_ones:.1f} of 30 sick and {healthy_ones:.1f} of 30 healthy versions quarantined, {asked:.1f} asked of a person")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
