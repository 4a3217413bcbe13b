"""The checks of the installation."""

from __future__ import annotations

from fastapi import APIRouter, Response

from inspector.api.access import Anybody
from inspector.api.answers import answer
from inspector.api.openapi import documented
from inspector.api.parameters import Name
from inspector.api.sessions import ServiceDep
from inspector.api.wire import BrokenLine, CheckLine, CheckList
from inspector.check import Check
from inspector.errors import Unknown

router = APIRouter()


@router.get("/v1/checks", **documented(CheckList))
def list_checks(service: ServiceDep, who: Anybody) -> Response:
    """All that are installed, and what was found but cannot be used."""
    catalog = service.catalog
    return answer(
        CheckList(
            checks=[_line(check) for check in catalog.checks.values()],
            broken=[BrokenLine(name=left.name, reason=left.reason) for left in catalog.broken],
            duplicates=[BrokenLine(name=left.name, reason=left.reason) for left in catalog.duplicates],
        )
    )


@router.get("/v1/checks/{owner}/{name}", **documented(CheckLine, 404))
def read_check(service: ServiceDep, who: Anybody, owner: Name, name: Name) -> Response:
    """One check."""
    check = service.catalog.checks.get(f"{owner}/{name}")
    if check is None:
        raise Unknown("check", f"{owner}/{name}")
    return answer(_line(check))


def _line(check: Check) -> CheckLine:
    return CheckLine(
        name=check.name,
        version=check.version,
        tier=check.tier,
        cause=check.cause,
        subject=check.subject.__name__,
        needs=[need.__name__ for need in check.needs],
        late=check.late,
        title=check.title,
        description=check.description,
        parameters=dict(check.parameters),
    )
