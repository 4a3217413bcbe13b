"""A box for each test."""

from __future__ import annotations

import pytest


@pytest.fixture
def box(boxes):
    with boxes.create() as box:
        yield box
