"""`inspector decisions`: the feed, and the taking back of what a check decided."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inspector.cli.inputs import Json
from inspector.cli.output import json_line, say, table, warn
from inspector.cli.service import Data, Key, Url, connected

if TYPE_CHECKING:
    from inspector.client import Api

app = typer.Typer(help="The feed of decisions.", invoke_without_command=True)
POLL_S = 20.0
GONE = 410
_COLUMNS = ("seq", "action", "cause", "subject", "environment", "mode", "by", "why")

After = Annotated[int, typer.Option("--after", min=0, help="The seq of the last decision that was read.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is decided from now on, until Ctrl-C.")]


@app.callback(invoke_without_command=True)
def read_decisions(
    context: typer.Context, follow: Follow = False, after: After = 0, url: Url = "", key: Key = "", data: Data = None, json: Json = False
) -> None:
    """Read the feed: everything decided after a place in it, in order."""
    if context.invoked_subcommand is not None:
        return
    with connected(url, key, data, role="trainer") as api:
        for page in _pages(api, after, follow=follow):
            if json:
                for decision in page:
                    json_line(decision)
            elif page:
                table(_COLUMNS, [_row(decision) for decision in page])
            sys.stdout.flush()  # whoever follows through a pipe sees it now


@app.command("revoke")
def revoke(
    check: Annotated[str, typer.Option("--check", help="Qualified name of the check.")],
    version: Annotated[int, typer.Option("--version", min=1)],
    preview: Annotated[bool, typer.Option("--preview", help="Only count what it would change.")] = False,
    url: Url = "",
    key: Key = "",
    data: Data = None,
    json: Json = False,
) -> None:
    """Take back everything that rests on one version of a check alone, in one logged act."""
    with connected(url, key, data, role="owner") as api:
        done = api.revoke(check, version, preview=preview)
    if json:
        json_line(done)
        return
    said = "would be" if preview else "were"
    by_action = ", ".join(f"{count} {action}" for action, count in sorted(done["by_action"].items()))
    say(f"{done['decisions']} decisions {said} taken back" + (f" ({by_action})" if by_action else "") + f"; {done['remaining']} rest on other checks too")


def _pages(api: Api, after: int, *, follow: bool) -> Iterator[list[dict[str, Any]]]:
    from inspector.client import ApiError

    epoch: str | None = None
    while True:
        try:
            page = api.decisions(after=after, epoch=epoch, wait=POLL_S if follow else 0.0)
        except ApiError as error:
            if error.status != GONE:
                raise
            warn(f"{error.reason}; what stands now follows instead")
            epoch, after = yield from _standing(api)
            continue
        yield page["decisions"]
        epoch = page["epoch"]
        after = page["decisions"][-1]["seq"] if page["decisions"] else max(after, page["seq"])
        if not page["more"] and not follow:
            return


def _standing(api: Api) -> Generator[list[dict[str, Any]], None, tuple[str, int]]:
    """The snapshot; returns where to read on."""
    page = api.snapshot()
    place = (page["epoch"], page["seq"])
    yield page["decisions"]
    while page["next"] is not None:
        page = api.snapshot(after=page["next"])
        yield page["decisions"]
    return place


def _row(decision: dict[str, Any]) -> tuple[object, ...]:
    said = decision.get
    action = said("action") if said("reward_override") is None else f"{said('action')} {said('reward_override'):g}"
    action = f"{action} {said('state')}" if said("state") else action
    subject = said("trajectory") or said("group") or said("task") or said("run") or ""
    place = f"{said('environment') or ''} {said('version') or ''}".strip()
    mode = said("mode") if said("enforced", True) else f"{said('mode')} (stopped)"
    return said("seq"), action, said("cause"), subject, place, mode, said("author"), "\n".join(said("reasons") or ())
