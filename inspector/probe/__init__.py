"""Climbs the ladder of probes: what of an environment version is sound, and what is not, with proof."""

from inspector.probe.plans import Depth
from inspector.probe.probing import probe

__all__ = ["Depth", "probe"]
