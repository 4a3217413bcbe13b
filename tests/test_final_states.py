"""Which states count as the same."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from inspector.errors import BadSubmission
from inspector.final_states import final_states, read_whiteouts, state_digest
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


def left(*files):
    return read_whiteouts((PurePosixPath(path), length) for path, length in files)


def test_whiteouts_are_told_from_what_was_left():
    found = left(("app/.wh.old.py", 0), ("app/new.py", 3), ("app/cache/.wh..wh..opq", 0), ("app/cache/a", 1), (".wh.secret", 0), ("app/.who", 2))
    assert [str(path) for path in found.files] == ["app/new.py", "app/cache/a", "app/.who"]
    assert [str(path) for path in found.deleted] == ["app/old.py", "secret"]
    assert [str(path) for path in found.emptied] == ["app/cache"]


@pytest.mark.parametrize(
    "path",
    ["a/.wh.", "a/.wh...", "a/.wh..", "a/.wh..wh.plnk", "a/.wh..wh.", ".wh..wh..opq", "a/.wh.b/c", ".wh..wh..opq/c"],
)
def test_a_deletion_that_names_nothing_is_refused(path):
    with pytest.raises(BadSubmission):
        left((path, 0))


def test_a_deletion_that_holds_something_is_refused():
    with pytest.raises(BadSubmission, match="holds 5 bytes"):
        left(("a/.wh.notes", 5))
