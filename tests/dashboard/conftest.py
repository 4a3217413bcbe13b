"""A served API with judged trajectories, the pages in process, and a real browser where there is one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn
from streamlit.testing.v1 import AppTest

from dashboard import session
from inspector.api import create_app
from inspector.settings import Settings
from inspector.store.session import connect
from tests.api.conftest import drain, make_keys
from tests.dashboard.house import BROWSER, SCRIPT, Served, answers, free_port


@pytest.fixture(scope="module")
def served(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    settings = Settings(database_url=module_database, store_url=f"file://{tmp_path_factory.mktemp('store')}", port=free_port(), dashboard_port=free_port())
    engine = connect(module_database, pool_size=2)
    server = uvicorn.Server(uvicorn.Config(create_app(settings), host="127.0.0.1", port=settings.port, log_level="error", timeout_graceful_shutdown=2))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{settings.port}"
    answers(url + "/healthz")
    yield Served(url, engine, settings, make_keys(engine), lambda: drain(engine, settings))
    server.should_exit = True
    thread.join(10)
    engine.dispose()


@pytest.fixture
def pages(served: Served, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., AppTest]]:
    """The app in process, signed in."""
    started: list[AppTest] = []

    def opened(page: str | None = None, holder: str | None = "acme-reviewer", **parameters: str) -> AppTest:
        monkeypatch.setenv("INSPECTOR_API_URL", served.url)
        monkeypatch.setattr(session, "secret", lambda: served.keys[holder] if holder else None)
        app = AppTest.from_file(str(SCRIPT), default_timeout=60)
        started.append(app)
        for name, value in parameters.items():
            app.query_params[name] = value
        app.run()
        if page:
            app.switch_page(page)
            for name, value in parameters.items():
                app.query_params[name] = value
            app.run()
        assert not app.exception, app.exception
        return app

    yield opened
    for app in started:
        if "api" in app.session_state:
            app.session_state["api"].close()


@pytest.fixture(scope="module")
def dashboard(served: Served) -> Iterator[str]:
    """The address of a served dashboard."""
    url = f"http://127.0.0.1:{served.settings.dashboard_port}"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("INSPECTOR_")}
    environment |= {"INSPECTOR_API_URL": served.url, "INSPECTOR_DASHBOARD_PORT": str(served.settings.dashboard_port)}
    command = [sys.executable, "-P", "-m", "uvicorn", "dashboard.asgi:app", "--port", str(served.settings.dashboard_port), "--log-level", "warning"]
    with subprocess.Popen(command, env=environment, cwd="/") as process:
        try:
            answers(url + "/_stcore/health")
            yield url
        finally:
            process.terminate()
            process.wait(15)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real Chromium."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no chromium on PATH (Debian: apt-get install chromium), so nothing is tried in a browser")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=BROWSER)
        yield opened
        opened.close()


@pytest.fixture(autouse=True)
def _main_stays_main() -> Iterator[None]:
    """AppTest puts a page in the place of `__main__`; child processes of later tests would then run that page."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main
