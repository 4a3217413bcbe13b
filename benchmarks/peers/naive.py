"""The naive pipeline: one POST and one ORM commit for each trajectory, JSONB, and a Celery task for each of its checks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Annotated

from celery import Celery
from fastapi import Depends, FastAPI
from sqlalchemy.orm import Session

from benchmarks.peers import measures
from benchmarks.peers.measures import Found
from benchmarks.peers.models import Posted
from benchmarks.peers.tables import Trajectory, Verdict, engine
from benchmarks.shared import texts

celery = Celery("naive", broker=os.environ.get("BENCH_REDIS_URL"))
celery.conf.update(task_serializer="json", accept_content=["json"], task_ignore_result=True, task_acks_late=True, broker_connection_retry_on_startup=True)
app = FastAPI()


def session() -> Iterator[Session]:
    with Session(engine()) as opened:
        yield opened


@app.get("/ready")
def ready() -> dict[str, bool]:
    return {"ready": True}


@app.post("/trajectories", status_code=202)
def post(posted: Posted, opened: Annotated[Session, Depends(session, scope="function")]) -> dict[str, int]:
    row = Trajectory(
        name=posted.id,
        environment=posted.environment.id,
        version=posted.environment.version,
        task=posted.task.id,
        reward=posted.reward,
        body=posted.model_dump(mode="json", exclude_unset=True),
    )
    opened.add(row)
    opened.commit()
    for check in measures.selected():
        TASKS[check].delay(row.id)
    return {"id": row.id}


@celery.task(name="naive.signatures")
def signatures(id_: int) -> None:
    _text_check(id_, "signatures")


@celery.task(name="naive.compression")
def compression(id_: int) -> None:
    _text_check(id_, "compression")


@celery.task(name="naive.near_duplicates")
def near_duplicates(id_: int) -> None:
    _text_check(id_, "near_duplicates")


@celery.task(name="naive.anomalies")
def anomalies(id_: int) -> None:
    with Session(engine()) as opened:
        row = opened.get_one(Trajectory, id_)
        [found] = measures.anomalies([measures.numbers(row.body)])
        _keep(opened, id_, "anomalies", found)


TASKS = {"signatures": signatures, "compression": compression, "near_duplicates": near_duplicates, "anomalies": anomalies}


def _text_check(id_: int, check: str) -> None:
    with Session(engine()) as opened:
        row = opened.get_one(Trajectory, id_)
        _keep(opened, id_, check, measures.TEXT_CHECKS[check](texts.joined(row.body["trajectory"])))


def _keep(opened: Session, id_: int, check: str, found: Found) -> None:
    opened.add(Verdict(trajectory=id_, check=check, flagged=found.flagged, score=found.score, details=found.details))
    opened.commit()
