"""What can go wrong, by whose fault it is.

InspectorError
├── BadSubmission            the caller's; answered with its `status_code`
│   ├── Unknown              404  nothing there that this key may see
│   ├── Conflict             409
│   ├── TooLarge             413
│   ├── UnknownEncoding      415
│   ├── Unauthenticated      401
│   ├── Forbidden            403
│   ├── Gone                 410  a cursor that the feed can no longer serve
│   └── TooMany              429  carries `retry_after_s`
├── Unavailable              503  ours or the operator's, worth a retry; carries `retry_after_s`
│   └── StorageFull          507
├── UnreadableInput          a file that no importer understands
├── MissingExtra             a part of the product that is not installed
├── MisusedCheck             the author of a check broke the contract of `inspector.check`
└── NotAssessed              not a failure: a check lacks what it needs to judge this subject
"""

from __future__ import annotations


class InspectorError(Exception):
    """The root of everything that this package raises on purpose."""


class BadSubmission(InspectorError):
    """The caller sent something that cannot be accepted; the message names the field and the value."""

    status_code = 422

    def __init__(self, reason: str, *, path: str | None = None) -> None:
        self.reason = reason
        self.path = path  # where in the submission, as `$.environment.id`
        super().__init__(f"{path}: {reason}" if path else reason)


class Unknown(BadSubmission):
    """Nothing of that name is visible to this key; a foreign project's thing gives the same answer."""

    status_code = 404

    def __init__(self, noun: str, name: object) -> None:
        super().__init__(f"no {noun} {str(name)[:200]!r}")


class Conflict(BadSubmission):
    """The same identity was already used for something else."""

    status_code = 409


class TooLarge(BadSubmission):
    """The body, what it inflates to, or one line is over its limit."""

    status_code = 413


class UnknownEncoding(BadSubmission):
    """A content type or content encoding that we do not read."""

    status_code = 415


class Unauthenticated(BadSubmission):
    """No key, or one that is unknown, expired or revoked."""

    status_code = 401


class Forbidden(BadSubmission):
    """The key is good, its role is not enough."""

    status_code = 403


class Gone(BadSubmission):
    """The cursor speaks of another epoch or of what the log no longer holds; start from the snapshot."""

    status_code = 410


class TooMany(BadSubmission):
    """Over a rate or an in-flight limit of this project."""

    status_code = 429

    def __init__(self, reason: str, *, retry_after_s: float) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(reason)


class Unavailable(InspectorError):
    """A part of the service is away for now; the same call is worth repeating."""

    status_code = 503

    def __init__(self, reason: str, *, retry_after_s: float = 1.0) -> None:
        self.reason = reason
        self.retry_after_s = retry_after_s
        super().__init__(reason)


class StorageFull(Unavailable):
    """No room for segments or rows; nothing of the body was acknowledged."""

    status_code = 507


class UnreadableInput(InspectorError):
    """A file that cannot be read as trajectories; the message names the file, the line and why."""


class MissingExtra(InspectorError):
    """A part that is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra {extra!r}: pip install 'inspector[{extra}]'")


class MisusedCheck(InspectorError):
    """A check breaks the contract; raised at import or registration, never while it runs."""


class NotAssessed(InspectorError):
    """Raised by a check, or by what it asked for, when a need is missing; becomes the outcome `not_assessed`."""

    def __init__(self, need: str) -> None:
        self.need = need
        super().__init__(need)
