"""The one door to boxes."""

from __future__ import annotations

from pathlib import Path

from inspector.sandbox.bubblewrap import Bubblewrap
from inspector.sandbox.protocol import Backend


def open_backend(folder: Path | None = None, *, network: bool = False, ahead: bool = True) -> Backend:
    """Boxes of this machine, by bubblewrap.

    `folder` keeps the layers for whoever opens it again; without one they go with this process. Boxes may ask for the machine's
    network only where `network` says so. A kind of box that is asked for again and again is made `ahead`, which takes a little more CPU
    time and saves more than half of the wait. What the machine lacks is told by `capabilities.missing`.
    """
    return Bubblewrap(folder, network=network, ahead=ahead)
