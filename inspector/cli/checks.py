"""`inspector checks`: what is installed, what of it is broken, and what one check says of some files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from inspector.cli.auditing import Baseline, Declarations, FailOn, PolicyFile, WithoutReasoning, audit_files
from inspector.cli.inputs import As, Files, Format, Json
from inspector.cli.output import json_line, say, table

if TYPE_CHECKING:
    from inspector.check import Check

app = typer.Typer(help="The installed checks.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="As `checks list` shows it; `builtin/` may be left out.")]


@app.command("list")
def list_checks(json: Json = False) -> None:
    """All installed checks, and whatever is broken or comes twice."""
    from inspector import catalog

    found = catalog.load()
    left_out = [("broken", one) for one in found.broken] + [("duplicate", one) for one in found.duplicates]
    if json:
        for check in found.checks.values():
            json_line({"status": "installed", **_header(check)})
        for status, one in left_out:
            json_line({"status": status, "check": one.name, "reason": one.reason})
        return
    table(("check", "version", "tier", "cause", "lane", "title"), [tuple(_header(check).values()) for check in found.checks.values()])
    if left_out:
        table(("left out", "check", "reason"), [(status, one.name, one.reason) for status, one in left_out])


@app.command("show")
def show_check(name: Name, json: Json = False) -> None:
    """What one check looks at, and how it can be set."""
    check = _named(name)
    if json:
        json_line({**_header(check), **_details(check)})
        return
    details = _details(check)
    say(f"{check.name} version {check.version}: {check.tier}, {check.cause}, {'late' if check.late else 'fast'} lane")
    for line in ["", *check.description.splitlines(), ""]:
        say(line)
    table(("parameter", "default"), list(details["parameters"].items()))
    table(("example", "expected"), [(text, kind) for kind in ("flagged", "clean") for text in details[kind]])


@app.command("run")
def run_check(
    name: Name,
    files: Files,
    format: Format = "auto",
    environment: Declarations = None,
    json: Json = False,
    without_reasoning: WithoutReasoning = False,
    fail_on: FailOn = "",
    policy_file: PolicyFile = None,
    named_as: As = None,
    baseline: Baseline = None,
) -> None:
    """Audit files by one check alone; exit codes as of `inspector audit`."""
    audit_files(files, format, environment, json, without_reasoning, fail_on, [_named(name).name], None, policy_file, named_as, baseline)


def _named(name: str) -> Check:
    from inspector import catalog

    (check,) = catalog.load().select(only=[name if "/" in name else f"{catalog.OWNER}/{name}"])[:1] or (None,)
    if check is None:
        raise typer.BadParameter(f"no check is named {name!r}")
    return check


def _header(check: Check) -> dict[str, Any]:
    return {
        "check": check.name,
        "version": check.version,
        "tier": check.tier.value,
        "cause": check.cause.value,
        "lane": "late" if check.late else "fast",
        "title": check.title,
    }


def _details(check: Check) -> dict[str, Any]:
    return {
        "subject": check.subject.__name__,
        "needs": [need.__name__ for need in check.needs],
        "description": check.description,
        "parameters": dict(check.parameters),
        "flagged": [shown.name for shown in check.flagged],
        "clean": [shown.name for shown in check.clean],
    }
