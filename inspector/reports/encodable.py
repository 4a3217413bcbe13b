"""Foreign text that can be written as UTF-8: a lone surrogate, which no encoding has, is written out."""

from __future__ import annotations

from typing import Any


def encodable(text: str) -> str:
    """The same text, with `\\ud800` spelt out where it stood for itself."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def all_encodable(value: Any) -> Any:
    """The same plain value, with all its texts and keys so."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {all_encodable(key): all_encodable(one) for key, one in value.items()}
    return [all_encodable(one) for one in value] if isinstance(value, list | tuple) else value
