"""Finds every installed check, ours by the same door as strangers': the entry points `inspector.checks`."""
