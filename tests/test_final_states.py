"""Which states count as the same."""

from __future__ import annotations

import pytest

from inspector.final_states import final_states, state_digest
from inspector.testing import trajectory

LEFT = {"sha256": "ab" * 32, "role": "final_state"}
OTHER = {"sha256": "cd" * 32, "role": "final_state"}
LOG = {"sha256": "ef" * 32, "role": "test_log"}


def digest(**fields):
    return state_digest(trajectory(**fields).header)


def test_the_same_files_are_the_same_state_however_they_are_listed():
    assert digest(artifacts=[LEFT, OTHER]) == digest(artifacts=[OTHER, LOG, {**LEFT, "sha256": "sha256:" + "ab" * 32, "name": "left.tar"}])
    assert len({digest(artifacts=[LEFT]), digest(artifacts=[OTHER]), digest(artifacts=[LEFT, OTHER])}) == 3
    assert final_states(trajectory(artifacts=[LOG, OTHER, LEFT]).header) == ["ab" * 32, "cd" * 32]


def test_another_verifier_makes_it_another_state():
    of = [{"id": "acme/terminal", "version": "1", "verifier_digest": name} for name in ("sha256:1", "sha256:2")]
    assert len({digest(artifacts=[LEFT], environment=one) for one in of} | {digest(artifacts=[LEFT])}) == 3


@pytest.mark.parametrize(
    "fields",
    [
        {"artifacts": None},
        {"artifacts": [LOG]},
        {"artifacts": [LEFT], "termination": {"truncated": True}},
        {"artifacts": [LEFT], "termination": {"timed_out": True}},
    ],
    ids=["no artifacts", "a log", "truncated", "timed out"],
)
def test_there_is_nothing_to_compare(fields):
    assert digest(**fields) is None
