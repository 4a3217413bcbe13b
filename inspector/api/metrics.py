"""What this process counts, and what it looks up when it is asked."""

from __future__ import annotations

import math
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from inspector.intake import Receipt, Status
from inspector.store.probes import ProbeState
from inspector.store.work import BLOCK, LATE_BLOCK, Waiting
from inspector.trajectory import Header

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
MOST_WORKERS = 64


class Metrics:
    """One registry for each application."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Histogram("inspector_request_seconds", "Requests", ["method", "route", "status"], registry=self.registry, buckets=SECONDS)
        self._timers: dict[tuple[str, str, int], Histogram] = {}  # looking up a label costs more than counting
        self.lines = Counter("inspector_lines", "Posted lines by what became of them", ["status", "reason"], registry=self.registry)
        self.refused = Counter("inspector_bodies_refused", "Whole bodies that were refused", ["reason"], registry=self.registry)
        self.ingest = Histogram("inspector_ingest_seconds", "From a read body to its durable rows", registry=self.registry, buckets=SECONDS)

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """One answered request."""
        timer = self._timers.get((method, route, status))
        if timer is None:
            timer = self._timers[method, route, status] = self.requests.labels(method, route, str(status))
        timer.observe(seconds)

    def count(self, receipts: Sequence[Receipt]) -> None:
        """Lines by status; a refusal by the field that it is about, whose names are ours and few."""
        for (status, reason), number in Tally((receipt.status, _reason_class(receipt)) for receipt in receipts).items():
            self.lines.labels(status, reason).inc(number)

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """A number that is read when it is asked for."""
        self.registry.register(_Read(name, text, read))

    def watch_work(self, read: Callable[[], tuple[Waiting, Waiting] | None]) -> None:
        """The work list, by one query a scrape; nothing where the database is away."""
        self.registry.register(_Work(read))

    def watch_probes(self, read: Callable[[], Mapping[ProbeState, int] | None]) -> None:
        """Probes that are not over, by one query a scrape; nothing where the database is away."""
        self.registry.register(_Probes(read))

    def page(self) -> bytes:
        """In Prometheus's text format."""
        return generate_latest(self.registry)


def _reason_class(receipt: Receipt) -> str:
    if receipt.status is not Status.REJECTED:
        return ""
    head = (receipt.path or "$").split(".")[1:2]
    return head[0].partition("[")[0] if head and head[0].partition("[")[0] in _FIELDS else "line"


_FIELDS = frozenset(Header.__struct_fields__) | {"trajectory"}


class _Read(Collector):
    def __init__(self, name: str, text: str, read: Callable[[], float]) -> None:
        self._name, self._text, self._read = name, text, read

    def collect(self) -> Iterable[Metric]:
        yield GaugeMetricFamily(self._name, self._text, value=self._read())

    def describe(self) -> Iterable[Metric]:
        yield GaugeMetricFamily(self._name, self._text)


class _Work(Collector):
    def __init__(self, read: Callable[[], tuple[Waiting, Waiting] | None]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        both = self._read()
        if both is None:
            return
        waiting, late = both
        yield GaugeMetricFamily("inspector_work_waiting", "Subjects that wait for an audit", value=waiting.waiting)
        yield GaugeMetricFamily("inspector_work_leased", "Subjects in an audit", value=waiting.leased)
        yield GaugeMetricFamily("inspector_work_overdue", "Leases that ran out", value=waiting.overdue)
        yield GaugeMetricFamily("inspector_work_oldest_seconds", "Age of the oldest that waits: the ingest lag", value=waiting.oldest_s)
        wanted = GaugeMetricFamily("inspector_workers_wanted", "Worker processes that the queue has work for", labels=["queue"])
        wanted.add_metric(["audit"], min(MOST_WORKERS, math.ceil((waiting.waiting + waiting.leased) / BLOCK)))
        wanted.add_metric(["late"], min(MOST_WORKERS, math.ceil((late.waiting + late.leased) / LATE_BLOCK)))
        yield wanted

    def describe(self) -> Iterable[Metric]:
        return []


class _Probes(Collector):
    def __init__(self, read: Callable[[], Mapping[ProbeState, int] | None]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        counts = self._read()
        if counts is not None:
            gauge = GaugeMetricFamily("inspector_probes", "Probes that wait and that run", labels=["state"])
            for state, count in counts.items():
                gauge.add_metric([state], count)
            yield gauge

    def describe(self) -> Iterable[Metric]:
        return []
