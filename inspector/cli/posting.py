"""`inspector post`: files to the service, as any trainer would send them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from inspector.cli import DONE, FAILED, UNREADABLE
from inspector.cli.inputs import As, Files, Format, Json, named, sources_of
from inspector.cli.output import json_line, progress, say, warn
from inspector.cli.service import Data, Key, Url, connected

if TYPE_CHECKING:
    from inspector.client import Api
    from inspector.formats import Imported, Refused
    from inspector.local.sources import Sources

LINES, BYTES = 500, 8 << 20  # of one body
AGAIN = (0, 408, 425, 429, 502, 503, 504, 507)
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 10.0
TAKEN = ("created", "duplicate")

Wait = Annotated[float, typer.Option("--wait", min=0, max=600, help="Seconds to wait for the decisions on each body.")]
Patience = Annotated[float, typer.Option("--patience", min=0, help="Seconds to go on trying while the service is away or busy.")]


def post_files(
    files: Files,
    format: Format = "auto",
    url: Url = "",
    key: Key = "",
    data: Data = None,
    json: Json = False,
    wait: Wait = 0.0,
    patience: Patience = 60.0,
    named_as: As = None,
) -> None:
    """Post files to the service. To post them twice is to post them once.

    Exit codes: 0 all are there; 1 some were refused, or the service was away; 2 wrong usage; 3 something could not be read.
    """
    from inspector.local.sources import told

    sources = sources_of(files, format, named(named_as))
    refused: list[Refused] = []
    counts: Counter[str] = Counter()
    with connected(url, key, data, role="trainer") as api, progress() as step:
        for body in _bodies(sources, refused):
            for receipt in posted(api, body, wait=wait, patience_s=patience):
                counts[str(receipt["status"])] += 1
                _tell(receipt, json=json)
            step("posting", counts.total(), None)
    for line in told(refused):
        warn(f"not read: {line}")
    if not json:
        say(", ".join(f"{count} {status}" for status, count in sorted(counts.items())) or "nothing to post")
    failed = any(status not in TAKEN for status in counts)
    raise typer.Exit(UNREADABLE if refused or not counts else FAILED if failed else DONE)


Receipts = list[dict[str, object]]


def posted(api: Api, body: list[Imported], *, wait: float, patience_s: float) -> Receipts:
    """A receipt for each line, tried again while the service is away or busy. Raises ApiError when that lasts, and for every other refusal."""
    receipts = _persistently(api, [one.line for one in body], patience_s)
    told = [{"source": one.source, **msgspec.to_builtins(receipt)} for one, receipt in zip(body, receipts, strict=True)]
    for receipt in told:
        receipt.pop("line")
    if wait:
        rulings = api.wait_for_decisions([str(r["id"]) for r in told if r["status"] in TAKEN], wait)
        for receipt in told:
            receipt["decision"] = msgspec.to_builtins(rulings.get(str(receipt["id"])))
    return told


def _bodies(sources: Sources, refused: list[Refused]) -> Iterator[list[Imported]]:
    from inspector.formats import Refused

    body: list[Imported] = []
    size = 0
    for found in sources.read():
        if isinstance(found, Refused):
            refused.append(found)
            continue
        if body and (len(body) >= LINES or size + len(found.line) > BYTES):
            yield body
            body, size = [], 0
        body.append(found)
        size += len(found.line)
    if body:
        yield body


def _persistently(api: Api, lines: list[bytes], patience_s: float) -> list[object]:
    from inspector.client import ApiError

    end, pause_s = time.monotonic() + patience_s, FIRST_PAUSE_S
    while True:
        try:
            return list(api.post_lines(lines))
        except ApiError as error:
            asked = float(error.retry_after) if error.retry_after.replace(".", "", 1).isdigit() else 0.0
            if error.status not in AGAIN or time.monotonic() + max(asked, pause_s) > end:
                raise
            warn(f"{error}; trying again")
        time.sleep(max(asked, pause_s))
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _tell(receipt: dict[str, object], *, json: bool) -> None:
    if json:
        json_line(receipt)
    elif receipt["status"] not in TAKEN:
        place = f"{receipt['path']}: " if receipt.get("path") else ""
        warn(f"{receipt['source']}: {receipt['status']}: {place}{receipt.get('reason') or ''}")
