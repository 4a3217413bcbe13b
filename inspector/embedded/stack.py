"""The whole service on one folder: its processes started in order, kept running, and stopped in order."""

from __future__ import annotations

import http.client
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import msgspec

from inspector.embedded import installation, keeper, logs, postgres, redis, services
from inspector.embedded.child import Child, Program
from inspector.embedded.folder import Folder, Note, Noted, boot
from inspector.embedded.ports import Guard, Ports, require_free, require_guarded
from inspector.embedded.processes import CannotStart, Process, born, require_proc
from inspector.embedded.users import require_named_user, server_user, sockets_folder, within_reach
from inspector.settings import Settings
from inspector.showable import showable

Part = Literal["postgres", "redis", "migrations", "keys", "api", "worker", "webhooks", "sandbox", "beat", "dashboard"]
ALL: tuple[Part, ...] = ("postgres", "redis", "migrations", "keys", "api", "worker", "webhooks", "sandbox", "beat", "dashboard")
SERVER_READY_S = 60.0
API_READY_S = 60.0
POLL_S = 0.02


def say(line: str) -> None:
    """Tell the person at the terminal."""
    sys.stderr.write(f"inspector: {line}\n")
    sys.stderr.flush()


class Stack:
    """A running service, or the parts of it that are asked for.

    with Stack(data) as stack:
        post(stack.api_url, stack.keys["trainer"])

    A server that the settings name is used as it is; an empty `database_url` or `redis_url` stands for an embedded one.
    Everything ends with the `with` block, and with this process, however it dies.
    """

    def __init__(
        self,
        data: Path,
        *,
        parts: Iterable[Part] = ALL,
        ports: Ports | Literal["auto"] = "auto",
        settings: Settings | None = None,
        api_processes: int = 1,
        guard: Guard | None = None,  # what stands in front when we listen beyond this machine
        say: Callable[[str], None] = say,
        give_up: Callable[[], bool] = lambda: False,  # asked while starting
        hurry: Callable[[], bool] = lambda: False,  # asked while stopping
    ) -> None:
        self.settings = settings or Settings()
        self.parts = frozenset(parts)
        self.keys: dict[str, str] = {}
        self.children: dict[str, Child] = {}
        self._folder = Folder(data)
        self._ports = ports
        self._api_processes = api_processes
        self._guard = guard
        self._say, self._give_up, self._hurry = say, give_up, hurry
        self._cluster: postgres.Cluster | None = None
        self._keeper: subprocess.Popen[bytes] | None = None
        self._sockets: Path | None = None
        self._noting = threading.Lock()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def data(self) -> Path:
        return self._folder.path

    @property
    def database_url(self) -> str:
        return self.settings.database_url

    @property
    def redis_url(self) -> str:
        """Empty where no Redis is installed: doorbells then go through a folder, DATA/broker."""
        return self.settings.redis_url

    @property
    def api_url(self) -> str:
        return f"http://{self._reachable_host}:{self.settings.port}"

    @property
    def dashboard_url(self) -> str:
        return f"http://{self._reachable_host}:{self.settings.dashboard_port}"

    def login_address(self) -> str:
        """Where a person signs in."""
        return installation.login_address(self.dashboard_url, self.database_url, self.data)

    def start(self) -> None:
        """Bring the parts up and wait until they answer; raises CannotStart, with everything stopped again."""
        require_proc()
        require_guarded(self.settings.host, self._guard)
        with ExitStack() as undo:
            undo.callback(self.stop)
            self._take_folder()
            self._take_ports()
            self._start_servers()
            self._prepare_installation()
            self._start_services()
            undo.pop_all()

    def stop(self) -> None:
        """Stop everything, in order; what does not obey is killed."""
        for wave in _waves(self.children):
            self._stop_wave([self.children.pop(name) for name in wave])
        if self._cluster:
            self._cluster.close()
        if self._sockets:
            shutil.rmtree(self._sockets, ignore_errors=True)
        self._leave_folder()

    def bound_logs(self) -> None:
        """Keep the logs of long-running children from filling the disk; to be called now and then."""
        for child in self.children.values():
            logs.bound(child.log)

    def _take_folder(self) -> None:
        self._folder.prepare()
        lock = self._folder.lock(self._say)
        if left := keeper.end_leftovers(self._folder):
            self._say(f"an earlier start on {self.data} had died and left running: {', '.join(left)}; stopped them")
        self._keeper = keeper.start(self._folder, lock)

    def _leave_folder(self) -> None:
        if self._keeper is None:  # the folder was never ours
            self._folder.unlock()
            return
        self._folder.forget()
        keeper.dismiss(self._keeper)
        self._keeper = None
        self._folder.unlock()

    def _take_ports(self) -> None:
        host = self.settings.host
        ports = Ports.free(host) if self._ports == "auto" else self._ports
        for part, port, setting in (("api", ports.api, "INSPECTOR_PORT"), ("dashboard", ports.dashboard, "INSPECTOR_DASHBOARD_PORT")):
            if part in self.parts and self._ports != "auto":
                require_free(host, port, setting)
        store = self.settings.store_url or f"file://{self.data / 'store'}"
        self._settle(port=ports.api, dashboard_port=ports.dashboard, store_url=store)

    def _start_servers(self) -> None:
        wants_postgres = "postgres" in self.parts and not self.database_url
        wants_redis = "redis" in self.parts and not self.redis_url
        if wants_postgres or wants_redis:
            user = server_user(self.data / "postgres")
            self._sockets = sockets_folder(user)
        if wants_redis:
            self._start_redis()
        if wants_postgres:
            self._start_postgres()

    def _start_postgres(self) -> None:
        assert self._sockets
        folder = self.data / "postgres"
        require_named_user()
        user = server_user(folder)
        installed = within_reach(postgres.installation(), user, self._sockets)
        self._cluster = cluster = postgres.Cluster(folder, installed, self._sockets, user)
        cluster.prepare()
        self._settle(database_url=cluster.url)
        self._await(self.add(cluster.program()), cluster.answers, SERVER_READY_S)

    def _start_redis(self) -> None:
        assert self._sockets
        sockets = self._sockets
        server = redis.binary()
        if server is None:
            self._say(f"no Redis is installed; doorbells go through {self.data / 'broker'}")
            return
        user = server_user(self.data / "postgres")
        self._settle(redis_url=redis.url(sockets))
        child = self.add(redis.program(within_reach(server, user, sockets), sockets, user))
        self._await(child, lambda: redis.answers(sockets), SERVER_READY_S)

    def _prepare_installation(self) -> None:
        if "migrations" in self.parts:
            installation.migrate(self.database_url)
        if "keys" in self.parts:
            self.keys = installation.first_keys(self.database_url, self.data, prober_key=self.settings.prober_key)
        if "webhooks" in self.parts and not self.settings.webhook_key:
            self._settle(webhook_key=installation.webhook_key(self.data))

    def _start_services(self) -> None:
        """All at once, since each takes a second or two to come up; ready when the API says so."""
        if "worker" in self.parts:
            self.add(services.worker(self.settings, self.data))
        if "webhooks" in self.parts:
            self.add(services.deliverer(self.settings, self.data))
        if "sandbox" in self.parts:
            self._start_sandbox()
        if "beat" in self.parts:
            self.add(services.beat(self.settings, self.data))
        if "dashboard" in self.parts:
            self._start_dashboard()
        if "api" in self.parts:
            self._await(self.add(services.api(self.settings, self.data, self._api_processes)), self._api_answers, API_READY_S)

    def _start_sandbox(self) -> None:
        key = self.settings.prober_key or self.keys.get("prober")
        if lack := services.lacks_for_boxes():
            self._say(f"no sandbox worker, so probes wait: this machine gives no box ({showable(lack)})")
        elif key is None:
            self._say("no sandbox worker, so probes wait: no key of role prober is kept here; give INSPECTOR_PROBER_KEY")
        else:
            self.add(services.sandbox_worker(self.settings, self.data, self.api_url, key))

    def _start_dashboard(self) -> None:
        if services.has_dashboard():
            self.add(services.dashboard(self.settings, self.data, self.api_url))
        else:
            self._say("no dashboard: its extra is not installed (pip install 'inspector[dashboard]')")

    def _api_answers(self) -> bool:
        connection = http.client.HTTPConnection(self._reachable_host, self.settings.port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def add(self, program: Program) -> Child:
        """Start one more program in the tree; it is stopped beside the workers."""
        child = Child(program, self._folder.logs / f"{program.name}.log", say=self._say, changed=self._note)
        self.children[program.name] = child
        child.start()
        return child

    def _await(self, child: Child, answers: Callable[[], bool], patience_s: float) -> None:
        """Wait until the child answers; no other child may die meanwhile."""
        give_up_at = time.monotonic() + patience_s
        while not answers():
            for other in self.children.values():
                if other.starts != 1 or other.status is not None:
                    raise CannotStart(self._failure(other, other.how_it_ended))
            if time.monotonic() > give_up_at:
                raise CannotStart(self._failure(child, f"was not ready within {patience_s:.0f} s"))
            if self._give_up():
                raise CannotStart("stopped before it was ready")
            time.sleep(POLL_S)

    @staticmethod
    def _failure(child: Child, what: str) -> str:
        return f"{child.program.name} {what}. The end of {showable(str(child.log))}:\n{logs.tail(child.log)}"

    def _stop_wave(self, children: list[Child]) -> None:
        if children:
            with ThreadPoolExecutor(len(children)) as at_once:
                list(at_once.map(lambda child: child.stop(self._hurry), children))

    def _note(self) -> None:
        """Write down what runs now; called by the children's threads, which must go on when the disk is full."""
        with self._noting:
            try:
                self._folder.write(self._what_runs())
            except OSError as error:
                self._say(f"{self._folder.note_file} could not be written: {error}")

    def _what_runs(self) -> Note:
        noted = {name: Noted(name, child.process, tuple(child.program.ladder)) for name, child in list(self.children.items()) if child.process}
        return Note(
            boot=boot(),
            stack=Process(os.getpid(), born(os.getpid()) or 0),
            sockets=str(self._sockets or ""),
            api_url=self.api_url,
            dashboard_url=self.dashboard_url,
            database_url=self.database_url,
            redis_url=self.redis_url,
            children=tuple(noted[name] for wave in _waves(noted) for name in wave),
        )

    def _settle(self, **found: str | int) -> None:
        self.settings = msgspec.structs.replace(self.settings, **found)

    @property
    def _reachable_host(self) -> str:
        return {"0.0.0.0": "127.0.0.1", "::": "[::1]", "::1": "[::1]"}.get(self.settings.host, self.settings.host)  # noqa: S104


def _waves(names: Iterable[str]) -> list[list[str]]:
    """The order of the end: first nobody may post any more, then what is in hand is finished, and the database goes last."""
    there = list(names)
    others = [name for name in there if name not in ("api", "redis", "postgres")]
    return [
        wave for wave in ([name for name in there if name == "api"], others, [n for n in there if n == "redis"], [n for n in there if n == "postgres"]) if wave
    ]
