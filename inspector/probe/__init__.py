"""Climbs the ladder of probes: what of an environment version is sound, and what is not, with proof."""
