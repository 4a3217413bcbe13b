"""`inspector login` prints an address that the dashboard takes."""

from typer.testing import CliRunner

from inspector.cli.app import app


def test_a_login_address_is_printed_for_whoever_holds_a_key(served):
    told = CliRunner().invoke(app, ["login", "--url", served.url, "--key", served.keys["acme-reviewer"]])
    assert told.exit_code == 0, told.output
    assert f"http://127.0.0.1:{served.settings.dashboard_port}/login?token=" in told.output
