"""Environments under test, one face a file."""
