"""Runs foreign code where it can do no harm."""
