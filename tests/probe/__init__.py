"""Probes on real sandboxes."""
