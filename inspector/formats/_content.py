"""Turns message content of any vendor's shape into ATIF content; what has no place there is handed back, never dropped."""

from __future__ import annotations

import mimetypes
from typing import Any

from inspector.formats._json import text as json_text

IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
AUDIO = frozenset(f"audio/{kind}" for kind in ("wav", "mpeg", "mp4", "aac", "ogg", "flac", "webm", "aiff"))
_SAME = {"image/jpg": "image/jpeg", "audio/mp3": "audio/mpeg", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav"}
_TEXT = frozenset({"text", "input_text", "output_text", "summary_text", "reasoning_text"})
_PLAIN_KEYS = frozenset({"type", "text"})

Part = dict[str, Any]


def content(value: Any) -> tuple[str | list[Part], list[Any]]:
    """(ATIF content, the parts that it cannot carry as they are)."""
    if value is None or isinstance(value, str):
        return value or "", []
    if not isinstance(value, list):
        return json_text(value), [] if isinstance(value, (int, float, bool)) else [value]
    parts, kept = [], []
    for one in value:
        part, whole = _part(one)
        parts.append(part)
        kept += [] if whole else [one]
    if not parts:
        return "", kept
    return (parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts), kept


def is_atif(value: Any) -> bool:
    """Whether this is content as ATIF has it."""
    return isinstance(value, str) or (isinstance(value, list) and all(_is_part(part) for part in value))


def _is_part(part: Any) -> bool:
    if not isinstance(part, dict):
        return False
    kind, source = part.get("type"), part.get("source")
    if kind == "text":
        return isinstance(part.get("text"), str) and source is None and set(part) <= {"type", "text", "source"}
    if kind not in ("image", "audio") or not isinstance(source, dict) or part.get("text") is not None or not set(part) <= {"type", "text", "source"}:
        return False
    media, known = source.get("media_type"), {"media_type", "path", "duration_sec"} if kind == "audio" else {"media_type", "path"}
    return isinstance(media, str) and media in (IMAGES if kind == "image" else AUDIO) and isinstance(source.get("path"), str) and set(source) <= known


def _part(part: Any) -> tuple[Part, bool]:
    """(ATIF part, whether it says all that the original said)."""
    if isinstance(part, str):
        return _said(part), True
    if _is_part(part):
        return part, True
    if not isinstance(part, dict):
        return _said(json_text(part)), True
    if isinstance(part.get("type"), str) and part["type"] in _TEXT and isinstance(part.get("text"), str):
        return _said(part["text"]), all(key in _PLAIN_KEYS or not value for key, value in part.items())
    if part.get("type") == "refusal" and isinstance(part.get("refusal"), str):
        return _said(part["refusal"]), False
    return _media(part)


def _said(words: str) -> Part:
    return {"type": "text", "text": words}


def _media(part: Part) -> tuple[Part, bool]:
    address, media = _address(part)
    media = _SAME.get(media, media)
    if address and media in IMAGES:
        return {"type": "image", "source": {"media_type": media, "path": address}}, True
    if address and media in AUDIO:
        return {"type": "audio", "source": {"media_type": media, "path": address}}, True
    return _said(f"[{part.get('type', 'part')} that is kept under extra]"), False


def _address(part: Part) -> tuple[str, str]:
    """(URL or data URL, media type) of an image or a sound in any of the usual shapes; empty when there is none."""
    inner: Any = part
    for key in ("image_url", "image", "input_audio", "audio", "source"):
        if part.get(key):
            inner = part[key]
            break
    if isinstance(inner, str):
        return inner, _media_type(inner, str(part.get("format") or ""))
    if not isinstance(inner, dict):
        return "", ""
    media = str(inner.get("media_type") or (f"audio/{inner['format']}" if inner.get("format") else ""))
    if isinstance(inner.get("data"), str):
        return f"data:{media};base64,{inner['data']}", media
    address = inner.get("url") or inner.get("path")
    return (address, media or _media_type(address)) if isinstance(address, str) else ("", "")


def _media_type(address: str, suffix: str = "") -> str:
    if address.startswith("data:"):
        return address[5:64].partition(";")[0].partition(",")[0]
    return mimetypes.guess_type(f"x.{suffix}" if suffix else address.partition("?")[0])[0] or ""
