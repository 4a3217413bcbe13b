"""Boxes of this machine; where it gives none, the tests say why and are skipped."""

from __future__ import annotations

import pytest

from inspector.sandbox.opening import open_backend


@pytest.fixture(scope="session")
def boxes(tmp_path_factory):
    backend = open_backend(tmp_path_factory.mktemp("boxes"))
    if missing := backend.capabilities.missing:
        pytest.skip(f"this machine gives no box: {missing}")
    return backend


@pytest.fixture
def box(boxes):
    with boxes.create() as box:
        yield box
