"""Which tasks of an environment version paid for a final answer, and which refused it; answers are 64-bit numbers of a version's own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from sqlmodel import Session

from inspector.store.session import driver

TELLING = 5000  # answers that tell tasks apart
READ = 2000  # tasks of one answer that are looked at


class Given(NamedTuple):
    """A final answer with what it got."""

    number: int
    task: int
    paid: bool


class Offers(NamedTuple):
    """What is known of an answer."""

    paid: Mapping[int, str]  # tasks that paid it and never refused it: id and name
    offered: int
    refused: int


def note(session: Session, project: int, given: Iterable[Given]) -> None:
    """Take note of what was paid and refused; noting it twice changes nothing."""
    paid: dict[tuple[int, int], int] = {}
    for one in given:
        paid[one.number, one.task] = paid.get((one.number, one.task), 0) | (1 if one.paid else 2)
    if not paid:
        return
    ordered = sorted(paid)  # two at once take the rows in one order
    driver(session).execute(
        "INSERT INTO answer (project, number, task, paid, refused) SELECT %s, * FROM unnest(%s::bigint[], %s::bigint[], %s::bool[], %s::bool[])"
        " ON CONFLICT (project, number, task) DO UPDATE SET paid = answer.paid OR excluded.paid, refused = answer.refused OR excluded.refused"
        " WHERE (excluded.paid AND NOT answer.paid) OR (excluded.refused AND NOT answer.refused)",
        (project, [n for n, _ in ordered], [t for _, t in ordered], [bool(paid[p] & 1) for p in ordered], [bool(paid[p] & 2) for p in ordered]),
    )


def offers(session: Session, project: int, numbers: Collection[int], *, listed: int) -> dict[int, Offers]:
    """What is known of these answers, with so many of the tasks that paid. Of one that very many tasks were offered, the first of them are looked at."""
    rows = driver(session).execute(
        "SELECT a.number, count(*), count(*) FILTER (WHERE r.refused), (array_agg(r.task ORDER BY r.task) FILTER (WHERE r.paid AND NOT r.refused))[:%s]"
        " FROM unnest(%s::bigint[]) AS a(number) CROSS JOIN LATERAL (SELECT task, paid, refused FROM answer"
        " WHERE project = %s AND number = a.number ORDER BY task LIMIT %s) r GROUP BY a.number",
        (listed, sorted(set(numbers)), project, READ),
    )
    found = [(number, offered, refused, paid or []) for number, offered, refused, paid in rows.fetchall()]
    names = _names(session, {task for *_, paid in found for task in paid})
    return {number: Offers({task: names[task] for task in paid}, offered, refused) for number, offered, refused, paid in found}


def telling(session: Session, project: int, tasks: Collection[int]) -> list[tuple[list[int], list[int]]]:
    """Of answers that one of these tasks paid and another refused: who paid, and who refused. At most TELLING of them."""
    rows = driver(session).execute(
        "SELECT array_agg(task) FILTER (WHERE paid), array_agg(task) FILTER (WHERE refused) FROM answer WHERE project = %s AND task = ANY(%s)"
        " GROUP BY number HAVING bool_or(paid) AND bool_or(refused) LIMIT %s",
        (project, sorted(tasks), TELLING),
    )
    return [(paid, refused) for paid, refused in rows.fetchall()]


def _names(session: Session, tasks: Collection[int]) -> dict[int, str]:
    return dict(driver(session).execute("SELECT id, task FROM task WHERE id = ANY(%s)", (sorted(tasks),)).fetchall()) if tasks else {}
