"""Types of path and query parameters, with the same bounds as the wire."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Path, Query, Request
from fastapi.dependencies.models import Dependant
from pydantic import StringConstraints

from inspector.errors import BadSubmission
from inspector.showable import showable

# As trajectory.Identifier: no control characters. Written for pydantic's regular expressions, which know no \Z.
_TEXT = StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$")

Name = Annotated[str, _TEXT]
Key = Annotated[UUID, Path(description="our own id of the trajectory")]
Step = Annotated[int, Path(ge=0, le=2**53)]
After = Annotated[str | None, Query(max_length=1000, description="the `next` of the page before")]
Limit = Annotated[int, Query(ge=1, le=200)]
FeedLimit = Annotated[int, Query(ge=1, le=1000)]
Wait = Annotated[float, Query(ge=0, le=3600, allow_inf_nan=False, description="seconds; at most 30 are waited")]
LONGEST_WAIT_S = 30.0


async def described(request: Request) -> None:
    """Refuse a parameter that the route does not have: a filter with a slip in its name would give the whole list."""
    if not request.query_params:
        return
    known = _names(request.scope["route"].dependant)
    for name in request.query_params:
        if name not in known:
            has = ", ".join(sorted(known)) or "none"
            raise BadSubmission(f"no parameter of this address, which has {has}", path=f"query.{showable(name, limit=100)}")


def _names(dependant: Dependant) -> set[str]:
    return {parameter.alias for parameter in dependant.query_params}.union(*map(_names, dependant.dependencies))
