"""The conventional pipeline done well: arrays of a hundred, SQLAlchemy Core, one task per hundred, the forest asked once per task."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from celery import Celery
from fastapi import FastAPI
from sqlalchemy import insert, select

from benchmarks.peers import measures
from benchmarks.peers.models import Posted
from benchmarks.peers.tables import Trajectory, Verdict, engine
from benchmarks.shared import texts

TOGETHER = 100
celery = Celery("good", broker=os.environ.get("BENCH_REDIS_URL"))
celery.conf.update(task_serializer="json", accept_content=["json"], task_ignore_result=True, task_acks_late=True, broker_connection_retry_on_startup=True)
app = FastAPI()


@app.get("/ready")
def ready() -> dict[str, bool]:
    return {"ready": True}


@app.post("/trajectories", status_code=202)
def post(posted: list[Posted]) -> dict[str, list[int]]:
    with engine().begin() as connection:
        ids = list(connection.scalars(insert(Trajectory).returning(Trajectory.id, sort_by_parameter_order=True), [_row(one) for one in posted]))
    for at in range(0, len(ids), TOGETHER):
        audit.delay(ids[at : at + TOGETHER])
    return {"ids": ids}


def _row(posted: Posted) -> dict[str, Any]:
    return {
        "name": posted.id,
        "environment": posted.environment.id,
        "version": posted.environment.version,
        "task": posted.task.id,
        "reward": posted.reward,
        "body": posted.model_dump(mode="json", exclude_unset=True),
    }


@celery.task(name="good.audit")
def audit(ids: Sequence[int]) -> None:
    with engine().begin() as connection:
        rows = connection.execute(select(Trajectory.id, Trajectory.body).where(Trajectory.id.in_(ids))).all()
    verdicts = [verdict for id_, body in rows for verdict in _of_text(id_, texts.joined(body["trajectory"]))]
    if "anomalies" in measures.selected():
        scored = measures.anomalies([measures.numbers(body) for _, body in rows])
        verdicts += [{"trajectory": id_, "check": "anomalies", **found._asdict()} for (id_, _), found in zip(rows, scored, strict=True)]
    with engine().begin() as connection:
        connection.execute(insert(Verdict), verdicts)


def _of_text(id_: int, text: str) -> list[dict[str, Any]]:
    return [{"trajectory": id_, "check": name, **check(text)._asdict()} for name, check in measures.TEXT_CHECKS.items()]
