"""The secret of each webhook, derived from the operator's key, its id and its generation: the database holds none."""

from __future__ import annotations

import base64
import hashlib
import hmac
from uuid import UUID

from inspector.client.webhooks import PREFIX


def secret(operators_key: str, webhook: UUID, generation: int) -> str:
    """As its owner is shown it, and as it signs."""
    derived = hmac.digest(operators_key.encode(), b"webhook:%s:%d" % (webhook.bytes, generation), hashlib.sha256)
    return PREFIX + base64.b64encode(derived).decode()


def signing(operators_key: str, webhook: UUID, generation: int, *, overlap: bool) -> list[str]:
    """The secrets that sign now; the newest first."""
    return [secret(operators_key, webhook, each) for each in (generation, generation - 1)[: 1 + overlap] if each > 0]
