"""The plainest durable writer: FastAPI, one SQLite transaction a request, each line kept as zstd. No keys, no repeats, no audit."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import threading
import time
from functools import cache
from typing import Annotated

import zstandard
from fastapi import Depends, FastAPI, Request

app = FastAPI()
_writing = threading.Lock()


@cache
def database() -> sqlite3.Connection:
    opened = sqlite3.connect(os.environ["BENCH_SQLITE"], check_same_thread=False, isolation_level=None)
    opened.execute("PRAGMA journal_mode = WAL")
    opened.execute("PRAGMA synchronous = FULL")  # the log is flushed at every commit
    opened.execute("CREATE TABLE IF NOT EXISTS trajectory (id TEXT PRIMARY KEY, environment TEXT, task TEXT, reward REAL, received_at REAL, body BLOB)")
    return opened


async def body(request: Request) -> bytes:
    sent = await request.body()
    return gzip.decompress(sent) if request.headers.get("content-encoding") == "gzip" else sent


@app.get("/ready")
def ready() -> dict[str, bool]:
    database()
    return {"ready": True}


@app.post("/trajectories", status_code=202)
def post(sent: Annotated[bytes, Depends(body)]) -> dict[str, int]:
    now, compress = time.time(), zstandard.ZstdCompressor(level=3).compress
    rows = []
    for line in sent.splitlines():
        posted = json.loads(line)
        rows.append((posted["id"], posted["environment"]["id"], posted["task"]["id"], posted["reward"], now, compress(line)))
    with _writing:
        opened = database()
        opened.execute("BEGIN")
        opened.executemany("INSERT INTO trajectory VALUES (?, ?, ?, ?, ?, ?)", rows)
        opened.execute("COMMIT")
    return {"accepted": len(rows)}
