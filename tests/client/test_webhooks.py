"""What a receiver trusts: a right signature, of now, over these very bytes."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.client.webhooks import BadSecret, BadSignature, sign, verify

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + base64.b64encode(b"another secret, long enough").decode()
BODY = b'{"type":"decision.set_state","timestamp":"2026-11-30T10:00:00Z","data":{"decision":{"seq":7}}}'
NOW = 1_614_265_330


def headers(secrets: list[str], body: bytes = BODY, stamp: int = NOW) -> dict[str, str]:
    return {"Webhook-Id": "msg_1", "Webhook-Timestamp": str(stamp), "Webhook-Signature": sign(secrets, "msg_1", stamp, body)}


def test_the_signature_is_that_of_the_published_example() -> None:
    signed = sign([SECRET], "msg_p5jXN8AQM9LWM0D4loKWxJek", NOW, b'{"test": 2432232314}')
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_right_one_is_read() -> None:
    event = verify(BODY, headers([SECRET]), SECRET, now=NOW + 299)
    assert (event.id, event.type, event.timestamp) == ("msg_1", "decision.set_state", datetime(2026, 11, 30, 10, tzinfo=UTC))
    assert event.data["decision"]["seq"] == 7


@pytest.mark.parametrize(("signing", "trusting"), [([OTHER, SECRET], SECRET), ([SECRET], [OTHER, SECRET]), ([OTHER, SECRET], [OTHER])])
def test_while_secrets_overlap_either_is_enough(signing: list[str], trusting: str | list[str]) -> None:
    assert verify(BODY, headers(signing), trusting, now=NOW).id == "msg_1"


@pytest.mark.parametrize("late", [-301, 301])
def test_one_that_is_too_old_or_too_new_is_refused(late: int) -> None:
    with pytest.raises(BadSignature, match="more than 300 s"):
        verify(BODY, headers([SECRET]), SECRET, now=NOW + late)


@given(st.sampled_from(["Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"]), st.text(max_size=60))
def test_no_other_header_passes(name: str, value: str) -> None:
    given = headers([SECRET])
    if value == given[name]:
        return
    with pytest.raises(BadSignature):
        verify(BODY, given | {name: value}, SECRET, now=NOW)


@given(st.integers(0, len(BODY) - 1), st.integers(1, 255))
def test_no_other_body_passes(at: int, change: int) -> None:
    changed = bytearray(BODY)
    changed[at] ^= change
    with pytest.raises(BadSignature):
        verify(bytes(changed), headers([SECRET]), SECRET, now=NOW)


def test_what_is_signed_and_no_message_is_refused() -> None:
    for body in (b"", b"[]", b"\xff", b"[" * 10_000):
        with pytest.raises(BadSignature):
            verify(body, headers([SECRET], body), SECRET, now=NOW)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_%%%", SECRET.removeprefix("whsec_")])
def test_what_is_no_secret_is_told(secret: str) -> None:
    with pytest.raises(BadSecret):
        verify(BODY, headers([SECRET]), secret, now=NOW)
