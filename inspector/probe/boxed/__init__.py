"""Texts that run inside a box alone; nothing here is ever imported."""
