"""Runs the product and its peers interleaved, prints the tables and writes benchmarks/results.json."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec

from benchmarks import report, stacks, workload
from benchmarks.measuring import Tally, Way, bell_cost, measure
from benchmarks.stacks import Product, Running
from benchmarks.workload import Posted

RESULTS = Path(__file__).with_name("results.json")


class Size(NamedTuple):
    """How many trajectories a round takes of each; groups of eight are to come whole."""

    rounds: int
    product: int
    good: int
    naive: int
    small: int  # of the ways with small batches
    long: int


FULL, QUICK = Size(4, 1000, 400, 96, 200, 8), Size(1, 1000, 200, 40, 104, 4)
NAIVE_WAY, GOOD_WAY = Way(1, "single", 64), Way(100, "array")
WAYS = {  # of posting to the product
    "frames 500": Way(500, "frames"),
    "frames 100": Way(100, "frames"),
    "frames 10": Way(10, "frames"),
    "frames 1": Way(1, "frames"),
    "gzip 500": Way(500, "gzip"),
    "gzip 100": Way(100, "gzip"),
    "gzip 10": Way(10, "gzip"),
    "gzip 1": Way(1, "gzip"),
    "single, 64 clients": Way(1, "single", 64),
}


class Bench:
    """One run."""

    def __init__(self, size: Size, folder: Path) -> None:
        self.size, self.folder = size, folder
        self.tallies: dict[str, Tally] = {}
        self.shares: dict[str, float] = {}
        self.visits = 0

    def run(self) -> None:
        self.with_forest()
        self.without_forest()
        self.ingest()

    def with_forest(self) -> None:
        with ExitStack() as running:
            product = running.enter_context(stacks.product(self.folder / "product"))
            good = running.enter_context(stacks.peer("good", self.folder / "good"))
            naive = running.enter_context(stacks.peer("naive", self.folder / "naive"))
            self._warm([product, good, naive])
            self._disk(product)
            for number in range(self.size.rounds):
                self._tell(f"round {number + 1} of {self.size.rounds}")
                self._main_round("", product, good, naive, f"r{number}")
                self._small_ways(product, f"r{number}")
                self._long_round(product, good, naive, f"r{number}")
            self.shares["queue_of_audit_cpu"] = self._queue(product)

    def without_forest(self) -> None:
        three = " ".join(f"{stacks.FOUR}/{name}" for name in ("signatures", "compression", "near_duplicates"))
        with ExitStack() as running:
            product = running.enter_context(stacks.product(self.folder / "product3", checks=three))
            good = running.enter_context(stacks.peer("good", self.folder / "good3", forest=False))
            naive = running.enter_context(stacks.peer("naive", self.folder / "naive3", forest=False))
            everything = running.enter_context(stacks.product(self.folder / "everything", checks=""))
            self._warm([product, good, naive])
            everything.post(workload.short("warm-all", 104), batch=52, form="frames")
            for number in range(self.size.rounds):
                self._tell(f"without the forest, round {number + 1} of {self.size.rounds}")
                self._main_round(", no forest", product, good, naive, f"w{number}")
                self._measure("product, every check", everything, workload.short(f"all{number}", self.size.product), WAYS["frames 500"])

    def ingest(self) -> None:
        """Taking in alone: no worker runs."""
        with ExitStack() as running:
            product = running.enter_context(stacks.product(self.folder / "intake", audits=False))
            plain = running.enter_context(stacks.plain(self.folder / "plain"))
            for one, form in ((product, "frames"), (plain, "lines")):
                one.post(workload.short("warm", 104), batch=52, form=form)
            for number in range(self.size.rounds):
                self._tell(f"intake alone, round {number + 1} of {self.size.rounds}")
                for name, form in (("", "frames"), (", gzip", "gzip")):
                    posted = workload.short(f"i{number}{form}", self.size.product)
                    self._measure(f"intake: product{name}", product, posted, Way(500, form))
                    self._measure(f"intake: plain writer{name}", plain, posted, Way(500, "lines" if form == "frames" else form))

    # --- the parts of a round ----------------------------------------------------------------------------------------

    def _warm(self, running: Sequence[Running]) -> None:
        """The first trajectories load models and open files; what is found in them is compared too."""
        posted = workload.short("warm", 104)
        for one in running:
            self._tell(f"warming {one.name}")
            one.post(posted, batch=1 if one.name == "naive" else 52, form=_form(one))
            one.settle(posted)
        self._compare(running, posted)

    def _main_round(self, suffix: str, product: Product, good: Running, naive: Running, name: str) -> None:
        posted = workload.short(name, self.size.product)
        before = product.visits()
        self._measure(f"product, frames 500{suffix}", product, posted, WAYS["frames 500"])
        self.visits += 0 if suffix else product.visits() - before
        self._measure(f"good{suffix}", good, posted[: self.size.good], GOOD_WAY)
        self._measure(f"naive{suffix}", naive, posted[: self.size.naive], NAIVE_WAY)
        self._compare([product, good], posted[: self.size.good])
        self._compare([product, naive], posted[: self.size.naive])

    def _small_ways(self, product: Product, name: str) -> None:
        for label, way in WAYS.items():
            if label != "frames 500":
                count = self.size.product if way.batch >= 100 or way.clients > 2 else self.size.small
                posted = workload.short(f"{name}-{label.replace(' ', '-')}", count)
                self._measure(f"product, {label}", product, posted, way)

    def _long_round(self, product: Product, good: Running, naive: Running, name: str) -> None:
        posted = workload.long(f"{name}-long", self.size.long)
        few = posted[: max(2, self.size.long // 4)]
        self._measure("product, long", product, posted, Way(8, "frames"))
        self._measure("good, long", good, few, Way(2, "array"))
        self._measure("naive, long", naive, few, NAIVE_WAY)
        self._compare([product, good, naive], few)

    def _measure(self, label: str, running: Running, posted: Sequence[Posted], way: Way) -> None:
        tally = self.tallies.setdefault(label, Tally())
        measure(tally, running, posted, way)
        self._tell(f"{label}: {tally.rounds[-1] * 1e6:,.0f} µs each, {len(posted)} in all")

    @staticmethod
    def _compare(running: Sequence[Running], posted: Sequence[Posted]) -> None:
        """Everyone found the same."""
        first, *others = (one.findings(posted) for one in running)
        for one, found in zip(running[1:], others, strict=True):
            different = {id_: (first[id_], found[id_]) for id_ in first if first[id_] != found[id_]}
            assert not different, f"{running[0].name} and {one.name} found different things: {dict(list(different.items())[:3])}"

    def _disk(self, product: Product) -> None:
        """Of 1,000 trajectories posted by our client, on top of what lies there already."""
        posted = workload.short("disk", 1000)
        before = product.stored_bytes()
        product.post(posted, batch=500, form="frames")
        product.settle(posted)
        self.shares["disk_of_raw_json"] = (product.stored_bytes() - before) / sum(len(one.line) + 1 for one in posted)

    def _queue(self, product: Product) -> float:
        audits = sum(self.tallies["product, frames 500"].parts.values())
        return self.visits * bell_cost(product) / audits

    @staticmethod
    def _tell(what: str) -> None:
        sys.stderr.write(f"bench: {what} (load {os.getloadavg()[0]:.1f})\n")
        sys.stderr.flush()


def _form(running: Running) -> str:
    return {"naive": "single", "good": "array"}.get(running.name, "frames")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one small round, about two minutes")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="inspector-bench-") as folder:
        bench = Bench(QUICK if arguments.quick else FULL, Path(folder))
        bench.run()
    results = report.results(bench.tallies, bench.shares)
    print(report.tables(bench.tallies, results))
    arguments.output.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")


if __name__ == "__main__":
    main()
