"""The server of the dashboard: `uvicorn dashboard.asgi:app`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import streamlit as st
from starlette.middleware import Middleware
from starlette.routing import Route

from dashboard import assets, configuration
from dashboard.frame import Frame
from dashboard.guard import Guard
from dashboard.login import Doors
from dashboard.proxy import Proxy


def make_app(chosen: configuration.Configuration, transport: httpx.AsyncBaseTransport | None = None) -> st.App:
    """The pages, the routes beside them, and the guard before both."""
    client = httpx.AsyncClient(base_url=chosen.api_url, timeout=httpx.Timeout(20.0, connect=5.0), transport=transport, trust_env=False)
    doors, proxy = Doors(chosen, client), Proxy(chosen, client)

    @asynccontextmanager
    async def life(app: st.App) -> AsyncIterator[None]:
        async with client:
            yield

    return st.App(
        Path(__file__).parent / "streamlit_app.py",
        lifespan=life,
        routes=[
            Route("/episode", Frame().episode),
            Route(assets.ROUTE, assets.serve),
            Route("/login", doors.login),
            Route("/logout", doors.logout),
            Route("/proxy/trajectories/{key}/steps", proxy.steps),
            Route("/proxy/trajectories/{key}/findings", proxy.findings),
            Route("/proxy/trajectories/{key}/search", proxy.search),
        ],
        middleware=[Middleware(Guard, hosts=chosen.hosts)],
    )


app = make_app(configuration.read())
