"""All commands, gathered."""

from __future__ import annotations

import typer

from inspector.cli import auditing, checks

app = typer.Typer(
    name="inspector",
    help="Quality inspection between RL environments and RL trainers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
)
app.command("audit")(auditing.audit_files)
app.add_typer(checks.app, name="checks")
