"""`inspector up` and `inspector db`: the service on this machine, and its database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import msgspec
import typer

from inspector import settings
from inspector.cli import DONE, FAILED
from inspector.cli.inputs import Json
from inspector.cli.output import json_line, progress, say, warn
from inspector.cli.service import Data, data_folder
from inspector.settings import BadSetting, Settings

if TYPE_CHECKING:
    from inspector.embedded.ports import Guard

db = typer.Typer(help="The service's database.", no_args_is_help=True)

Port = Annotated[int | None, typer.Option("--port", min=1, max=65535, help="Of the API.")]
DashboardPort = Annotated[int | None, typer.Option("--dashboard-port", min=1, max=65535)]
Host = Annotated[str | None, typer.Option("--host", help="Where to listen; beyond this machine only with --behind.")]
Behind = Annotated[str | None, typer.Option("--behind", metavar="tls|oidc", help="What stands in front and protects keys and logins.")]
Workers = Annotated[int | None, typer.Option("--workers", min=1, help="Processes that audit.")]
FirstKeys = Annotated[Path | None, typer.Option("--first-keys", metavar="DIR", help="Of a new installation: write its keys there, once.")]
ApiProcesses = Annotated[int, typer.Option("--api-processes", min=1)]


def serve(
    data: Data = None,
    host: Host = None,
    port: Port = None,
    dashboard_port: DashboardPort = None,
    workers: Workers = None,
    api_processes: ApiProcesses = 1,
    behind: Behind = None,
) -> None:
    """Serve one folder until Ctrl-C: Postgres, Redis, API, workers, beat and dashboard as one process tree."""
    from inspector.embedded import up  # here: it needs the extra `server`

    if behind not in (None, "tls", "oidc"):
        raise typer.BadParameter(f"{behind!r} is neither tls nor oidc", param_hint="--behind")
    given = {"host": host, "port": port, "dashboard_port": dashboard_port, "workers": workers}
    chosen = msgspec.structs.replace(settings.load(), **{name: value for name, value in given.items() if value is not None})
    up(data_folder(data), settings=chosen, guard=cast("Guard | None", behind), api_processes=api_processes)


@db.command("upgrade")
def upgrade(data: Data = None, first_keys: FirstKeys = None, json: Json = False) -> None:
    """Bring the database to the schema of this version."""
    from inspector.embedded import installation
    from inspector.store import migrate

    with _database(data) as found:
        migrate.upgrade(found.database_url)
        if first_keys is not None:
            installation.first_keys(found.database_url, first_keys, prober_key=found.prober_key)
    if json:
        json_line({"upgraded": True})
    else:
        say("the database has the schema of this version")


@db.command("rebuild")
def rebuild(data: Data = None, json: Json = False) -> None:
    """Restore the rows of trajectories from the segments, after the database was lost. They are audited again.

    Keys, declarations, reviews and decisions are not in the segments and do not come back.
    """
    from inspector import audit, catalog
    from inspector import rebuild as rebuilding
    from inspector.store import migrate, selections
    from inspector.store.session import connect, transaction

    with _database(data) as found, progress() as step:
        migrate.upgrade(found.database_url)
        engine = connect(found.database_url, pool_size=2)
        root = found.store_path
        total, numbers = len(rebuilding.files_below(root)), count()

        def one_more(path: Path) -> None:
            step("restoring", next(numbers), total)

        with transaction(engine) as session:
            selection = selections.ensure(session, audit.selected(catalog.load().select()))
        done = rebuilding.rebuild(engine, root, selection, progress=one_more)
        engine.dispose()
    for line in done.damaged:
        warn(f"damaged: {line}")
    if json:
        json_line(done._asdict())
    else:
        say(f"{done.rows} rows restored and {done.present} were there, of {done.files} segments")
    raise typer.Exit(FAILED if done.damaged else DONE)


@contextmanager
def _database(data: Path | None) -> Iterator[Settings]:
    """The operator's database; else that of a folder, which is started for the purpose where it is not up."""
    chosen = settings.load()
    if chosen.database_url:
        if not chosen.store_url:
            raise BadSetting("INSPECTOR_STORE_URL is not set, and INSPECTOR_DATABASE_URL is: where are the segments?")
        yield chosen
        return
    from inspector.embedded import Stack
    from inspector.embedded.folder import Folder

    folder = Folder(data_folder(data))
    note = folder.read()
    if note is not None and note.stack.alive:
        yield msgspec.structs.replace(chosen, database_url=note.database_url, store_url=chosen.store_url or f"file://{folder.path / 'store'}")
        return
    with Stack(folder.path, parts={"postgres"}, settings=chosen) as stack:
        yield stack.settings
