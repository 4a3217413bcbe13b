"""What producers were promised and followers were told, and whether the service keeps to it."""

from __future__ import annotations

import hashlib
import http.client
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

import httpx
import psycopg

from inspector.store.segments import SegmentReader
from inspector.store.stretches import CorruptSegment, Location
from tests.faults.episodes import Episode, batches

READERS = 4
SAMPLE = 400  # ids that are read through the API
AGAIN_S = 0.25  # between two tries of a batch


class Acknowledged(NamedTuple):
    """What was promised of one id."""

    status: str
    key: str
    sha256: bytes
    excluded: bool  # what its decision is to be


class Ledger:
    """Every acknowledgement, kept by the producers themselves; safe in threads."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, Acknowledged] = {}
        self.answers: Counter[int] = Counter()  # by HTTP status; 0: none came
        self.faults: list[str] = []
        self.ceiling = 0  # producers rest when so many are acknowledged
        self.progress = threading.Condition()

    def __len__(self) -> int:
        return len(self.acknowledged)

    def allow(self, more: int) -> None:
        """So many more may be posted from now on."""
        with self.progress:
            self.ceiling = len(self) + more
            self.progress.notify_all()

    def rest(self, ended: threading.Event) -> None:
        """Returns when more may be posted, or soon after `ended` is set."""
        with self.progress:
            while len(self) >= self.ceiling and not ended.is_set():
                self.progress.wait(0.5)

    def answered(self, status: int) -> None:
        with self.progress:
            self.answers[status] += 1
            self.progress.notify_all()

    def note(self, posted: Sequence[Episode], receipts: Sequence[dict[str, Any]]) -> None:
        """The receipts of a batch, in its order."""
        with self.progress:
            for episode, receipt in zip(posted, receipts, strict=True):
                if receipt["status"] not in ("created", "duplicate") or receipt["id"] != episode.id:
                    self.faults.append(f"{episode.id} was answered {receipt}")
                    continue
                self.acknowledged[episode.id] = Acknowledged(receipt["status"], receipt["key"], hashlib.sha256(episode.line).digest(), episode.excluded)
            self.progress.notify_all()

    def until(self, fulfilled: Callable[[Ledger], bool], patience_s: float, what: str) -> None:
        """Wait for the producers to come so far."""
        with self.progress:
            assert self.progress.wait_for(lambda: fulfilled(self), patience_s), f"not within {patience_s:g} s: {what}; answers so far {dict(self.answers)}"


class Producer(threading.Thread):
    """Posts batch after batch, each until it is acknowledged, until it is told to stop."""

    def __init__(self, url: str, key: str, ledger: Ledger, name: str, seed: int) -> None:
        super().__init__(name=f"producer {name}", daemon=True)
        self._ledger = ledger
        self._batches = batches(random.Random(f"{seed} {name}"), name)
        self._http = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}", "Content-Type": "application/x-ndjson"}, timeout=20.0)
        self._ending = threading.Event()

    def run(self) -> None:
        with self._http:
            while not self._ending.is_set():
                self._post_until_acknowledged(next(self._batches))
                self._ledger.rest(self._ending)

    def stop(self) -> None:
        self._ending.set()
        self.join(60)

    def _post_until_acknowledged(self, batch: list[Episode]) -> None:
        body = b"\n".join(episode.line for episode in batch)
        while not self._posted(batch, body):
            if self._ending.wait(AGAIN_S):
                return  # what was not acknowledged was not promised

    def _posted(self, batch: list[Episode], body: bytes) -> bool:
        try:
            answer = self._http.post("/v1/trajectories", content=body)
        except httpx.HTTPError:
            self._ledger.answered(0)
            return False
        self._ledger.answered(answer.status_code)
        if answer.status_code == 200:
            self._ledger.note(batch, [json.loads(line) for line in answer.content.splitlines()])
        return answer.status_code == 200


class Follower(threading.Thread):
    """Follows the feed as a trainer does, from the beginning, through whatever happens."""

    def __init__(self, url: str, key: str, *, limit: int, wait_s: float) -> None:
        super().__init__(name="follower", daemon=True)
        self.seen: list[dict[str, Any]] = []
        self.epochs: set[str] = set()
        self.faults: list[str] = []
        self._parameters = {"limit": limit, "wait": wait_s}
        self._http = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=wait_s + 20.0)
        self._ending = threading.Event()

    @property
    def last(self) -> int:
        return self.seen[-1]["seq"] if self.seen else 0

    def run(self) -> None:
        with self._http:
            while not self._ending.is_set():
                self._ending.wait(0.0 if self._read() else AGAIN_S)

    def stop(self) -> None:
        self._ending.set()
        self.join(60)

    def _read(self) -> bool:
        """Whether something came."""
        epoch = {"epoch": next(iter(self.epochs))} if self.epochs else {}
        try:
            answer = self._http.get("/v1/decisions", params={"after": self.last, **self._parameters, **epoch})
        except httpx.HTTPError:
            return False
        if answer.status_code != 200:
            if answer.status_code != 503:
                self.faults.append(f"the feed answered {answer.status_code}: {answer.text[:200]}")
            return False
        page = answer.json()
        self.epochs.add(page["epoch"])
        for decision in page["decisions"]:
            if decision["seq"] != self.last + 1:
                self.faults.append(f"decision {decision['seq']} came after {self.last}")
            self.seen.append(decision)
        return bool(page["decisions"])


def lost(url: str, key: str, database_url: str, store: Path, ledger: Ledger) -> list[str]:
    """Acknowledged ids whose bytes are not where their rows say; some of them are asked for through the API too, which takes far longer."""
    with psycopg.connect(database_url) as connection:
        places = {id_: (project, Location(*place)) for id_, project, *place in connection.execute(_PLACES)}
    reader = SegmentReader(store)
    missing = [f"lost: {id_} ({promised.key})" for id_, promised in ledger.acknowledged.items() if not _stored(reader, places.get(id_), promised)]
    sample = random.Random(len(ledger)).sample(sorted(ledger.acknowledged.items()), min(SAMPLE, len(ledger)))
    with ThreadPoolExecutor(READERS) as pool:
        shares = pool.map(lambda share: _unreadable(url, key, share), [sample[at::READERS] for at in range(READERS)])
    return missing + [fault for share in shares for fault in share]


_PLACES = "SELECT t.id, p.uuid, t.segment, t.place, t.line FROM trajectory t JOIN project p ON p.id = t.project"


def _stored(reader: SegmentReader, place: tuple[UUID, Location] | None, promised: Acknowledged) -> bool:
    if place is None:
        return False
    try:
        line = reader.line(*place)
    except CorruptSegment:
        return False
    return hashlib.sha256(line).digest() == promised.sha256


def _unreadable(url: str, key: str, known: Sequence[tuple[str, Acknowledged]]) -> list[str]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    faults = []
    try:
        for id_, promised in known:
            connection.request("GET", f"/v1/trajectories/{promised.key}/raw", headers={"Authorization": f"Bearer {key}"})
            answer = connection.getresponse()
            content = answer.read()
            if answer.status != 200 or hashlib.sha256(content).digest() != promised.sha256:
                faults.append(f"lost: {id_} ({promised.key}), answered {answer.status} with {len(content)} bytes")
    finally:
        connection.close()
    return faults


def contradictions(database_url: str, ledger: Ledger, followers: Sequence[Follower]) -> list[str]:
    """Where verdicts, decisions and feed are not as they must be, once the work list is empty."""
    with psycopg.connect(database_url) as connection:
        return [*ledger.faults, *_verdicts(connection, ledger), *_decisions(connection, ledger), *_feed(connection, followers)]


def _verdicts(connection: psycopg.Connection[Any], ledger: Ledger) -> list[str]:
    """Exactly one, final and as it should be, for each; and none counted twice."""
    rows = {id_: (str(key), action, final) for id_, key, action, final in connection.execute(_VERDICTS)}
    faults = []
    for id_, promised in ledger.acknowledged.items():
        key, action, final = rows.get(id_, (None, None, None))
        if key != promised.key:
            faults.append(f"{id_} was acknowledged as {promised.key} and has the row {key}")
        elif (action, final) != (1 if promised.excluded else 0, True):
            faults.append(f"{id_}: action {action}, final {final}; excluded was to be {promised.excluded}")
    [(counted, accepted)] = connection.execute(_HONEST)
    return [*faults, *([] if counted == accepted else [f"{counted} honest rewards were counted for {accepted} accepted trajectories"])]


_VERDICTS = "SELECT t.id, t.key, v.action, v.final FROM trajectory t LEFT JOIN verdict v USING (key)"
_HONEST = "SELECT (SELECT coalesce(sum(honest), 0) FROM project_environment), (SELECT count(*) FROM verdict WHERE verdict = 1)"


def _decisions(connection: psycopg.Connection[Any], ledger: Ledger) -> list[str]:
    """At most one that supersedes nothing, and what stands is the last that was logged."""
    first: Counter[str] = Counter()
    decided: set[str] = set()
    for (body,) in connection.execute("SELECT body FROM decision ORDER BY seq"):
        decision = json.loads(bytes(body))
        if decision["scope"] != "trajectory":  # states follow from what was found
            continue
        decided.add(decision["trajectory"])
        first[decision["trajectory"]] += decision.get("supersedes") is None
    faults = [f"{count} decisions about {id_} supersede nothing" for id_, count in first.items() if count > 1]
    promised = ledger.acknowledged
    return faults + [f"{id_}: excluded, yet never logged" for id_ in promised if promised[id_].excluded and id_ not in decided]


def _feed(connection: psycopg.Connection[Any], followers: Sequence[Follower]) -> list[str]:
    """Without a gap; and every follower saw exactly it."""
    [(last,)] = connection.execute("SELECT last FROM feed")
    logged = [(seq, json.loads(bytes(body))) for seq, body in connection.execute("SELECT seq, body FROM decision ORDER BY seq")]
    faults = [] if [seq for seq, _ in logged] == list(range(1, last + 1)) else [f"the log has {len(logged)} decisions and its counter says {last}"]
    for follower in followers:
        faults += follower.faults
        seen = [(decision["seq"], decision["trajectory"], decision["action"]) for decision in follower.seen]
        if seen != [(seq, decision["trajectory"], decision["action"]) for seq, decision in logged]:
            faults.append(f"a follower saw {len(seen)} decisions up to {follower.last}, the log has {len(logged)}")
        if len(follower.epochs) > 1:
            faults.append(f"the feed changed its epoch: {follower.epochs}")
    return faults


def until(fulfilled: Callable[[], object], patience_s: float, what: str, every_s: float = 0.2) -> None:
    """Wait, however slow the machine is, for what is certain to come."""
    ends = time.monotonic() + patience_s
    while not fulfilled():
        assert time.monotonic() < ends, f"not within {patience_s:g} s: {what}"
        time.sleep(every_s)
