"""The small parts: breaker, Retry-After, batches, answers, options."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from inspector.client import BadOption, Client
from inspector.client.batches import Batcher, batch_of, halves
from inspector.client.breaker import Breaker, retry_after_s
from inspector.client.lines import line_of
from inspector.client.protocol import Fate, Reply, head, outcome


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_breaker_opens_after_five_failures_and_lets_one_try_through():
    clock = Clock()
    breaker = Breaker(clock=clock, jitter=lambda: 0.5)
    for _ in range(4):
        breaker.failed()
    assert (breaker.shut, breaker.wait_s) == (False, pytest.approx(0.8))
    breaker.failed()
    assert (breaker.shut, breaker.wait_s) == (True, pytest.approx(10.0))
    clock.now += 10.1
    assert not breaker.shut
    breaker.enter()
    assert breaker.shut  # for all others, while the one tries
    breaker.failed()
    assert breaker.wait_s == pytest.approx(10.0)
    breaker.passed()
    assert breaker.wait_s == 0


def test_a_pause_that_the_service_names_is_kept_and_capped():
    breaker = Breaker(clock=Clock(), jitter=lambda: 0.5)
    breaker.failed(30.0)
    assert (breaker.shut, breaker.wait_s) == (True, 30.0)
    breaker.failed(1e12)
    assert breaker.wait_s == 600.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("7", 7.0), ("1.5", 1.5), ("Mon, 30 Nov 2026 10:00:09 GMT", 9.0), ("Mon, 30 Nov 2020 10:00:09 GMT", 0.0), ("", None), ("soon", None), ("-3", None)],
)
def test_retry_after_is_a_number_or_a_date(value, seconds):
    assert retry_after_s({"retry-after": value}, now=lambda: datetime(2026, 11, 30, 10, tzinfo=UTC)) == seconds


def test_batches_close_by_count_by_bytes_and_by_time():
    clock = Clock()
    batcher = Batcher(most_lines=3, most_bytes=100, most_s=0.5, clock=clock)
    line = line_of(b'{"id":"%s"}' % (b"x" * 20))
    assert [len(batcher.add(line)) for _ in range(3)] == [0, 0, 1]
    assert batcher.wait_s is None
    assert batcher.add(line) == []
    assert [batch.lines for batch in batcher.add(line_of(b'{"id":"%s"}' % (b"y" * 90)))] == [1, 1]
    batcher.add(line)
    clock.now += 1
    assert batcher.wait_s == 0
    assert [batch.lines for batch in batcher.close()] == [1]


@pytest.mark.parametrize("count", [2, 3, 100])
def test_halves_hold_every_line_once_in_order(count):
    batch = batch_of([line_of(b'{"id":"%d"}' % number) for number in range(count)])
    assert [text for half in halves(batch) for text in half.texts()] == batch.texts()


def test_a_line_of_several_frames_survives():
    text = b'{"id":"long","trajectory":{"steps":[%s]}}' % b",".join(b'{"step_id":%d,"source":"user","message":"%d"}' % (n, n**20) for n in range(30_000))
    assert len(text) > 1 << 20
    assert batch_of([line_of(text), line_of(b'{"id":"short"}')]).texts() == [text, b'{"id":"short"}']


@pytest.mark.parametrize(
    ("status", "lines", "fate"),
    [
        (401, 9, Fate.LATER), (404, 9, Fate.LATER), (408, 9, Fate.LATER), (429, 9, Fate.LATER), (302, 9, Fate.LATER), (500, 9, Fate.LATER),
        (502, 9, Fate.LATER), (503, 9, Fate.LATER), (507, 9, Fate.LATER), (413, 9, Fate.SPLIT), (413, 1, Fate.DEAD), (422, 2, Fate.SPLIT),
        (415, 9, Fate.DEAD), (409, 1, Fate.DEAD),
    ],
)  # fmt: skip
def test_the_fate_of_a_body(status, lines, fate):
    assert outcome(Reply(status, {}, b"{}"), lines).fate is fate


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'{"line":1,"status":"created"}', b'{"line":0,"status":"created"}\n' * 2, b"\xff\xfe", b'{"line":0,"status":"cre']
)
def test_an_answer_without_a_receipt_for_each_line_acknowledges_nothing(body):
    assert outcome(Reply(200, {}, body), 1).fate is Fate.LATER


def test_the_head_of_the_feed_is_read_from_headers():
    assert head({"inspector-epoch": "e", "inspector-seq": "12"}) == ("e", 12)
    assert head({"inspector-epoch": "e", "inspector-seq": "many"}) is None
    assert head({}) is None


@pytest.mark.parametrize(
    "options",
    [
        {"url": "ftp://x"}, {"url": "http://"}, {"url": "somewhere"}, {"url": "http://x:port"}, {"key": ""}, {"key": "a\nb"}, {"fail_mode": "ajar"},
        {"mode": "enforce"}, {"deadline_s": 0}, {"deadline_s": float("nan")},
    ],
)  # fmt: skip
def test_a_wrong_option_is_said_at_once(options):
    with pytest.raises(BadOption):
        Client(**({"url": "http://service", "key": "ins_x"} | options))
