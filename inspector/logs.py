"""Structured logs: one JSON object a line, on standard error."""

from __future__ import annotations

import logging
import sys
from typing import Any

import msgspec
import structlog


def configure(level: str) -> None:
    """Send this process's logs to standard error from `level` on."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper("iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(_as_text),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping().get(level.upper(), logging.INFO)),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _as_text(entry: Any, **_: Any) -> str:
    return msgspec.json.encode(entry, enc_hook=str).decode()
