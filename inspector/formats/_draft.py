"""Seals what an importer found into one envelope line, typed as the door wants it, with what was lost on the way."""

from __future__ import annotations

import hashlib
import re
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple, get_type_hints

import msgspec

from inspector.errors import BadSubmission
from inspector.formats import _atif
from inspector.formats._files import Refused, Row
from inspector.formats._json import text as json_text
from inspector.formats._transcript import Transcript, is_number
from inspector.gates import admit
from inspector.settings import Limits
from inspector.showable import showable
from inspector.trajectory import Header

_LIMITS = Limits()
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:inspector:formats")
_TYPES = get_type_hints(Header, include_extras=True)
_OURS = frozenset({"id", "environment", "task", "reward", "extra"})  # set by `seal`; all other fields go through `put`
_LISTED = 100  # entries of `lost` at most
_FLOAT_BITS = 1023
_DEPTH = 32  # of extra; the door refuses an envelope deeper than 64
_LETTERS = re.compile(r"[^\w.+@-]+")


class Imported(msgspec.Struct, frozen=True):
    """One trajectory out of a file."""

    line: bytes  # the envelope as one line of JSON, ready to post or to audit
    source: str  # file:line
    lost: tuple[str, ...] = ()  # what of the original could not be carried, each as path: reason; also in extra.import


class Asked(NamedTuple):
    """What the caller says of files that do not say it themselves."""

    environment: str | None = None
    version: str | None = None


@dataclass
class Draft:
    """What an importer found in one row; `seal` turns it into an envelope."""

    source: str
    raw: bytes
    index: int = 0
    document: dict[str, Any] = field(default_factory=dict)
    id: Any = None
    environment: Any = None
    version: Any = None
    task: Any = None
    reward: float | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    fields: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, row: Row) -> Draft:
        """A draft that starts with what reading the row already lost."""
        return cls(row.source, row.raw, row.at, lost=list(row.lost))

    @property
    def digest(self) -> str:
        """SHA-256 of the original bytes."""
        return hashlib.sha256(self.raw).hexdigest()

    def lose(self, path: str, reason: str) -> None:
        """List something that could not be carried."""
        self.lost.append(f"{path}: {reason}")

    def put(self, name: str, value: Any) -> None:
        """Set an envelope field; a value that the envelope does not take goes under extra and is listed."""
        if value is None:
            return
        try:
            msgspec.convert(value, _TYPES[name])
        except msgspec.ValidationError as error:
            self.extra.setdefault("unreadable", {})[name] = value
            self.lose(f"$.{name}", f"kept under extra: {error}")
            return
        self.fields[name] = value

    def score(self, value: Any, path: str = "$.reward") -> None:
        """Set the reward: None stays None, a truth value counts 1 or 0, anything else that is no number stays under extra."""
        self.reward = self.number(value, path)

    def number(self, value: Any, path: str) -> float | None:
        """`value` as a score, or None with the reason listed."""
        if value is None:
            return None
        if isinstance(value, bool):
            self.lose(path, f"{str(value).lower()} is read as {float(value)}")
            return float(value)
        if is_number(value) and abs(value) < 1.7e308:
            return float(value)
        self.extra.setdefault("unreadable", {})[path] = value
        self.lose(path, f"{showable(json_text(value), limit=60)} is not a number; null instead, kept under extra")
        return None

    def components(self, scores: dict[str, Any], path: str, weights: dict[str, float] | None = None) -> None:
        """Set the reward's components."""
        rewards = {}
        for name, value in scores.items():
            score = self.number(value, f"{path}.{name}")
            weight = (weights or {}).get(name)
            rewards[name] = None if score is None else {"score": score} if weight is None else {"score": score, "weight": weight}
        self.put("rewards", rewards or None)

    def moment(self, name: str, value: Any) -> None:
        """Set a time; one without a zone is read as UTC and listed, 0 is no time."""
        try:
            read = datetime.fromtimestamp(value, UTC) if is_number(value) and value > 0 else datetime.fromisoformat(value) if isinstance(value, str) else None
        except (ValueError, OverflowError, OSError):
            self.lose(f"$.{name}", f"{showable(json_text(value), limit=60)} is not a time")
            return
        if read is not None and read.tzinfo is None:
            self.lose(f"$.{name}", "has no time zone; read as UTC")
            read = read.replace(tzinfo=UTC)
        if read is not None:
            self.put(name, read.astimezone(UTC).isoformat().replace("+00:00", "Z"))

    def told(self, transcript: Transcript, **about: Any) -> None:
        """Take the transcript as the document."""
        self.document = transcript.document(**about)
        self.lost += transcript.lost


def seal(draft: Draft, name: str, version: int, asked: Asked) -> Imported | Refused:
    """The envelope of a draft, or why there can be none."""
    digest = draft.digest
    try:
        document, notes = _atif.tidied(draft.document)
        envelope = _envelope(draft, digest, name, asked)
        lost = _listed([*draft.lost, *notes])
        extra = {name: _shallow(draft.extra)} if draft.extra else {}
        extra["import"] = {"format": name, "importer_version": version, "raw_sha256": digest, "lost": list(lost)}
        line = msgspec.json.encode({**envelope, "trajectory": document, "extra": extra})
        admit(line, _LIMITS)
    except RecursionError:
        return Refused(draft.source, "nested too deeply to be read")
    except (BadSubmission, UnicodeEncodeError) as error:
        return Refused(draft.source, str(error))
    return Imported(line, draft.source, lost)


def _envelope(draft: Draft, digest: str, name: str, asked: Asked) -> dict[str, Any]:
    own = identifier(draft.id) or str(uuid.uuid5(NAMESPACE, f"{digest}:{draft.index}"))
    return {
        "id": own,
        "environment": _environment(draft, name, asked),
        "task": {"id": identifier(draft.task) or first_words(draft.document), **draft.fields.pop("task_hash", {})},
        "reward": draft.reward,
        **draft.fields,
    }


def _environment(draft: Draft, name: str, asked: Asked) -> dict[str, str]:
    own = team_name(draft.environment, name)
    version = identifier(draft.version) if own else None
    return {"id": own or team_name(asked.environment, "local") or f"unknown/{name}", "version": version or identifier(asked.version) or "0"}


def team_name(value: Any, team: str) -> str | None:
    """`value` in the form `team/name`; the team is put in where it is missing."""
    text = identifier(value)
    if text is None:
        return None
    owner, slash, rest = text.strip("/").rpartition("/") if text.count("/") > 1 else text.partition("/")
    found = f"{_letters(owner)}/{_letters(rest)}" if slash else f"{team}/{_letters(owner or text)}"
    return found if found.strip("/-") else None


def _letters(text: str) -> str:
    return _LETTERS.sub("-", text).strip("-") or "-"


def identifier(value: Any) -> str | None:
    """`value` as an identifier: printable, at most 200 characters; None when there is nothing to name it by."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value == "":
        return None
    text = showable(str(value).strip())
    return text if 0 < len(text) <= 200 else f"{text[:150]}-{hashlib.sha256(text.encode()).hexdigest()[:32]}" if text else None


def first_words(document: dict[str, Any]) -> str:
    """A task id for a record without one: a digest of what the agent was told before it first acted."""
    told = []
    for step in document.get("steps") or []:
        if not isinstance(step, dict) or (step.get("source") == "agent" and not step.get("is_copied_context")):
            break
        told.append(step.get("message"))
    return f"prompt-{hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:16]}"


def _listed(lost: list[str]) -> tuple[str, ...]:
    shown = [showable(entry, limit=300) for entry in dict.fromkeys(lost)]
    return tuple(shown if len(shown) <= _LISTED else [*shown[:_LISTED], f"$: and {len(shown) - _LISTED} more like these"])


def _shallow(value: Any, depth: int = _DEPTH) -> Any:
    """`value` with what the door does not take written as JSON text: what lies too deep, and integers that no float holds."""
    if isinstance(value, dict):
        return {key: _shallow(item, depth - 1) for key, item in value.items()} if depth else json_text(value)
    if isinstance(value, list):
        return [_shallow(item, depth - 1) for item in value] if depth else json_text(value)
    return json_text(value) if isinstance(value, int) and value.bit_length() > _FLOAT_BITS else value


def envelope_fields() -> frozenset[str]:
    """Names of the envelope that a row may carry under our own names."""
    return frozenset(_TYPES) - _OURS
