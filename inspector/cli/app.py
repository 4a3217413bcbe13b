"""All commands, gathered."""

from __future__ import annotations

import typer

from inspector.cli import auditing, calibration, checks, decisions, demo, environments, keys, login, posting, probes, probing, runs, serving, status

app = typer.Typer(
    name="inspector",
    help="Quality inspection between RL environments and RL trainers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
)
app.command("audit")(auditing.audit_files)
app.command("probe")(probing.probe_environment)
app.add_typer(checks.app, name="checks")
app.command("calibration")(calibration.show_calibration)
app.command("up")(serving.serve)
app.command("demo")(demo.run_demo)
app.command("status")(status.show_status)
app.command("login")(login.offer_login)
app.command("post")(posting.post_files)
app.add_typer(decisions.app, name="decisions")
app.add_typer(environments.app, name="environments")
app.add_typer(probes.app, name="probes")
app.add_typer(runs.app, name="runs")
app.add_typer(keys.app, name="keys")
app.add_typer(serving.db, name="db")
