"""The two gates of a posted line: the door before it is acknowledged, and the worker's reading after it.

The door refuses what could not be stored or found again. What it lets through is never rejected any more: the worker
reads it as far as it can be read and reports the rest as defects of the record.
"""
