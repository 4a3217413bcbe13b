"""The one door to boxes."""

from __future__ import annotations

from pathlib import Path

from inspector.sandbox.bubblewrap import Bubblewrap
from inspector.sandbox.protocol import Backend


def open_backend(folder: Path | None = None, *, network: bool = False) -> Backend:
    """Boxes of this machine, by bubblewrap.

    `folder` keeps the layers for whoever opens it again; without one they go with this process. Boxes may ask for the machine's
    network only where `network` says so. What the machine lacks is told by `capabilities.missing`.
    """
    return Bubblewrap(folder, network=network)
