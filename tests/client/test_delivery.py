"""What is submitted arrives: in order, once, or with a count of why it did not."""

from __future__ import annotations

import gc
import threading
import time
from pathlib import Path

import msgspec
import pytest

from inspector.client import Client
from inspector.client.deadletters import DeadLetter
from inspector.errors import Unavailable
from inspector.trajectory import Posted
from tests.client.conftest import KEY, envelope, spools, until
from tests.client.server import Service, serving


def dead_letters(folder: Path) -> list[DeadLetter]:
    return [letter for path in folder.glob("dead-*.ndjson") for letter in msgspec.json.Decoder(DeadLetter).decode_lines(path.read_bytes())]


def test_dicts_typed_ones_and_lines_arrive(client, service):
    one = client(run="run7")
    one.submit([envelope(0), msgspec.convert(envelope(1), Posted), msgspec.json.encode(envelope(2))])
    one.submit(envelope(3))
    assert one.flush(5)
    assert service.order == ["t0", "t1", "t2", "t3"]
    assert [msgspec.json.decode(service.lines[name]).get("run") for name in ("t0", "t2")] == [
        {"id": "run7", "trainer": None, "work": "train", "step": None, "policy_version": None},
        None,
    ]


def test_what_is_posted_twice_is_counted_as_a_duplicate(client, service):
    one = client()
    one.submit([envelope(0), envelope(0), envelope(0, reward=0.0)])
    assert one.flush(5)
    assert (one.stats.sent, one.stats.duplicates, one.stats.conflicts) == (1, 1, 1)


def test_none_and_zero_rewards_are_kept_apart(client, service):
    one = client()
    one.submit([envelope(0, reward=None), envelope(1, reward=0.0)])
    assert one.flush(5)
    assert [msgspec.json.decode(service.lines[name])["reward"] for name in ("t0", "t1")] == [None, 0.0]


def test_a_refused_line_costs_only_itself_and_is_kept_with_its_reason(client, service, tmp_path):
    one = client(spool_dir=tmp_path)
    one.submit([envelope(0), envelope(1, reject_me=1), envelope(2)])
    assert one.flush(5)
    assert (service.order, one.stats.rejected, one.stats.dead) == (["t0", "t2"], 1, 1)
    (letter,) = dead_letters(tmp_path)
    assert (letter.path, letter.reason, msgspec.json.decode(letter.line)["id"]) == ("$.reject_me", "rejected: asked for it", "t1")
    assert "asked for it" in one.stats.reasons[0]


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_body_that_is_refused_is_bisected_to_the_line_at_fault(client, service, tmp_path, status):
    service.refuse = lambda lines: status if any(b'"t5"' in line for line in lines) else None
    one = client(spool_dir=tmp_path)
    one.submit([envelope(number) for number in range(16)])
    assert one.flush(5)
    assert service.order == [f"t{number}" for number in range(16) if number != 5]
    assert [letter.reason for letter in dead_letters(tmp_path)] == [f"{status}: a bad body"]
    assert len(service.bodies) <= 2 * 5 + 1


@pytest.mark.parametrize("status", [409, 415, 418])
def test_a_body_that_can_never_be_taken_is_given_up_at_once(client, service, tmp_path, status):
    service.refuse = lambda lines: status
    one = client(spool_dir=tmp_path)
    one.submit([envelope(number) for number in range(3)])
    assert one.flush(5)
    assert (one.stats.rejected, len(dead_letters(tmp_path)), len(service.bodies)) == (3, 3, 1)


def test_a_refused_key_loses_nothing(client, service, tmp_path):
    service.fault = 401
    one = client(spool_dir=tmp_path)
    one.submit([envelope(0)])
    assert one.flush(3)
    assert (one.stats.spooled, one.stats.rejected) == (1, 0)
    until(lambda: "401" in one.stats.trouble)


@pytest.mark.parametrize("fault", [500, 503, 507, 429, "reset", "html", "hang", "drip", "body_drip"])
def test_a_fault_keeps_the_order_and_loses_nothing(client, service, tmp_path, fault):
    service.fault = fault
    one = client(spool_dir=tmp_path, batch_lines=4, post_timeout_s=0.2, follow=False)
    for number in range(24):
        one.submit(envelope(number))
    until(lambda: one.stats.retries >= 1)
    assert one.flush(5)
    assert service.order == []
    service.fault = None
    one.submit(envelope(24))
    assert one.flush(30, delivered=True)
    assert service.order == [f"t{number}" for number in range(25)]
    assert (one.stats.dropped, one.stats.rejected, one.stats.spool_bytes) == (0, 0, 0)
    until(lambda: not spools(tmp_path))


def test_a_body_that_always_breaks_the_service_is_isolated(client, service, tmp_path, monkeypatch):
    monkeypatch.setattr("inspector.client.protocol.POISON_AFTER", 3)
    service.refuse = lambda lines: 500 if any(b'"t2"' in line for line in lines) else None
    one = client(spool_dir=tmp_path)
    one.submit([envelope(number) for number in range(4)])
    assert one.flush(20, delivered=True)
    assert service.order == ["t0", "t1", "t3"]
    assert len(dead_letters(tmp_path)) == 1


def test_retry_after_is_respected(client, service):
    service.fault, service.retry_after = 503, "1"
    one = client(follow=False)
    one.submit(envelope(0))
    until(lambda: one.stats.retries == 1)
    service.fault = None
    assert one.flush(10)
    first, second = (at for at, method, _ in service.requests if method == "POST")
    assert second - first >= 1.0


def test_without_a_disk_what_finds_no_room_is_dropped_and_counted(client, service):
    service.fault = "hang"
    one = client(max_queue_bytes=20_000, batch_lines=10, deadline_s=0.05)
    for start in range(0, 3000, 100):
        one.submit([envelope(number) for number in range(start, start + 100)])
    assert not one.flush(0.2)
    stats = one.stats
    assert stats.submitted == 3000
    assert 0 < stats.dropped < 3000
    assert stats.queued_bytes <= 20_000
    assert "no room" in " ".join(stats.reasons)


def test_a_full_spool_keeps_the_oldest_and_counts_the_rest(client, service, tmp_path):
    service.fault = 503
    one = client(max_queue_bytes=4_000, max_spool_bytes=20_000, batch_lines=10, spool_dir=tmp_path, follow=False, deadline_s=5.0)
    one.submit([envelope(number, extra={"noise": f"{number * 7919:x}" * 20}) for number in range(2000)])
    one.flush(5)
    assert sum(path.stat().st_size for path in spools(tmp_path)) <= 20_000
    stats = one.stats
    assert stats.dropped > 0
    service.fault = None
    assert one.flush(30, delivered=True)
    kept = [int(name[1:]) for name in service.order]
    assert kept == sorted(kept)
    assert kept[:10] == list(range(10))
    assert len(kept) + one.stats.dropped == 2000


def test_redact_sees_every_trajectory_and_its_failure_withholds_it(client, service):
    def redact(envelope):
        if envelope["id"] == "t1":
            raise RuntimeError("a secret")
        return {**envelope, "trajectory": {"steps": []}}

    one = client(redact=redact)
    one.submit([envelope(0), envelope(1), msgspec.json.encode(envelope(2)), msgspec.convert(envelope(3), Posted)])
    assert one.flush(5)
    assert service.order == ["t0", "t2", "t3"]
    assert all(b"go" not in line for line in service.lines.values())
    assert one.stats.withheld == 1
    assert one.decide(envelope(1))["t1"].unaudited


@pytest.mark.parametrize(
    "bad", [b"", b"{", b"[]", b'{"id": 3}', b"{}\n{}", 7, None, {"id": object()}, {"id": "x", "reward": float("nan")}, {1, 2}, b"[" * 100_000]
)
def test_what_cannot_be_sent_is_counted_and_raises_nothing(client, service, bad):
    one = client()
    one.submit([bad, envelope(0)])
    assert one.flush(5)
    assert (one.stats.rejected, service.order) == (1, ["t0"])
    assert one.decide([bad, envelope(0)], wait_s=5.0).advices[1].unaudited is False


def test_scalars_of_numpy_are_numbers(client, service):
    numpy = pytest.importorskip("numpy")
    one = client()
    one.submit(envelope(0, reward=numpy.float32(0.5), seed=numpy.int64(3)))
    assert one.flush(5)
    assert msgspec.json.decode(service.lines["t0"])["reward"] == 0.5


@pytest.mark.parametrize("nothing", [7, None, "text", object()])
def test_what_is_no_list_of_trajectories_raises_nothing(client, nothing):
    one = client()
    one.submit(nothing)
    assert one.decide(nothing).unaudited == 1
    assert one.flush(5)
    assert one.stats.rejected == 2


def test_after_the_service_is_back_nothing_goes_to_disk_any_more(client, service, tmp_path):
    """While a trainer submits without a pause."""
    service.fault = 503
    one = client(spool_dir=tmp_path, follow=False)
    one.submit([envelope(0)])
    until(lambda: one.stats.spooled)
    service.fault = None
    stop, numbers = threading.Event(), iter(range(1, 10**6))

    def work():
        while not stop.wait(0.005):
            one.submit(envelope(next(numbers)))

    trainer = threading.Thread(target=work)
    trainer.start()
    until(lambda: one.stats.sent > 50 and not one.stats.spool_bytes)
    until(lambda: not spools(tmp_path))
    spooled = one.stats.spooled
    until(lambda: one.stats.sent > spooled + 100)
    assert one.stats.spooled <= spooled + 50
    stop.set()
    trainer.join()
    assert one.flush(10, delivered=True)
    assert service.order == [f"t{number}" for number in range(len(service.order))]


def test_a_forgotten_client_sends_what_it_has_and_ends_its_threads(url, service):
    before = set(threading.enumerate())
    one = Client(url, KEY, follow=False)
    one.submit([envelope(number) for number in range(100)])
    threads = [thread for thread in threading.enumerate() if thread not in before and thread.name.startswith("inspector-")]
    assert len(threads) == 2
    del one
    gc.collect()
    until(lambda: not any(thread.is_alive() for thread in threads))
    assert len(service.order) == 100


def test_a_hook_that_hangs_holds_up_nobody_but_itself(client, service):
    hanging = threading.Event()
    one = client(redact=lambda envelope: hanging.wait(30) and envelope, deadline_s=0.2, max_queue_bytes=200_000)
    began = time.monotonic()
    assert one.decide(envelope(0)).unaudited == 1
    one.submit([envelope(number) for number in range(1000)])
    assert time.monotonic() - began < 2.0
    assert one.stats.dropped > 0
    hanging.set()


def test_a_strict_client_says_what_was_lost(client, service):
    service.fault = "hang"
    one = client(strict=True, deadline_s=0.2)
    with pytest.raises(Unavailable, match="not judged"):
        one.decide(envelope(0))
    with pytest.raises(Unavailable, match="in time"):
        one.flush(0.2)


def test_submitting_from_many_threads_loses_nothing(client, service, tmp_path):
    one = client(spool_dir=tmp_path, deadline_s=20.0, max_queue_bytes=50_000)
    threads = [threading.Thread(target=lambda part=part: [one.submit(envelope(number)) for number in range(part * 200, part * 200 + 200)]) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert one.flush(20, delivered=True)
    assert sorted(service.order) == sorted(f"t{number}" for number in range(800))


def test_a_closed_client_counts_what_it_is_given(client, service):
    one = client()
    one.submit(envelope(0))
    assert one.close(5)
    one.submit(envelope(1))
    assert one.decide(envelope(2)).unaudited == 1
    assert (service.order, one.stats.dropped) == (["t0"], 2)


def test_memory_stays_bounded_while_the_service_is_away(tmp_path):
    resource = pytest.importorskip("resource")
    service = Service()
    service.fault = "hang"
    with serving(service) as url, Client(url, KEY, spool_dir=tmp_path, max_queue_bytes=2 << 20, max_spool_bytes=4 << 20, deadline_s=0.02) as one:
        one.submit([msgspec.json.encode(envelope(0))])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number in range(6000):
            one.submit(msgspec.json.encode(envelope(number, extra={"noise": f"{number:x}" * 4000})))
        assert one.stats.queued_bytes <= 2 << 20
        assert one.stats.spool_bytes <= 4 << 20
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 120 << 10
