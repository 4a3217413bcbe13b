"""Verifiers for the toy environment that can be fooled."""
