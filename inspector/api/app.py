"""Makes the application: routes, errors, what is common to every request, and its beginning and end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio.to_thread
from fastapi import Depends, FastAPI

from inspector import __version__, logs
from inspector.api import answers, openapi
from inspector.api.metrics import Metrics
from inspector.api.observing import Observed
from inspector.api.parameters import described
from inspector.api.routes import (
    amending,
    artifacts,
    calibration,
    checks,
    contamination,
    decisions,
    environments,
    keys,
    logins,
    notices,
    operations,
    posting,
    probe_work,
    probes,
    projects,
    recycling,
    replay_work,
    runs,
    search,
    trajectories,
    triage,
    webhooks,
)
from inspector.api.service import Service
from inspector.api.threads import ROUTES
from inspector.settings import Settings, load

ROUTERS = [
    module.router
    for module in (
        posting,
        amending,
        artifacts,
        decisions,
        notices,
        triage,
        search,
        trajectories,
        probe_work,
        replay_work,
        probes,
        environments,
        contamination,
        recycling,
        runs,
        calibration,
        checks,
        keys,
        projects,
        logins,
        webhooks,
    )
]


def create_app(settings: Settings | None = None) -> FastAPI:
    """The application, by the settings of the environment where none are given."""
    settings = settings or load()
    logs.configure(settings.log_level)
    metrics = Metrics()

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = ROUTES
        app.state.service = service = Service(settings, metrics)
        service.start()
        yield
        await service.stop()

    app = FastAPI(title="inspector", version=__version__, lifespan=life, openapi_url="/v1/openapi.json", docs_url="/docs", redoc_url=None)
    for router in ROUTERS:
        app.include_router(router, dependencies=[Depends(described)])
    app.include_router(operations.router)  # whoever asks for health may add what keeps caches away
    app.add_middleware(Observed, metrics=metrics)
    answers.install(app)
    openapi.install(app)
    return app
