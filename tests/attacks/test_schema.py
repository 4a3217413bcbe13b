"""The service keeps to its own OpenAPI description, whoever asks whatever: schemathesis tries, with all its checks."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import CHECKS

from inspector.api import create_app
from inspector.settings import Limits, Settings
from tests.api.conftest import House
from tests.attacks.conftest import MANY, serving

SCHEMA = schemathesis.openapi.from_dict(create_app(Settings()).openapi())
OPERATIONS = {operation.label: operation for operation in (found.ok() for found in SCHEMA.get_all_operations())}
HOLDERS = {"trainer": "acme-trainer", "reviewer": "acme-reviewer", "owner": "acme-owner", "admin": "admin", "prober": "prober"}


@schemathesis.serializer("application/x-ndjson")
def as_lines(context: schemathesis.SerializationContext, value: object) -> bytes:
    """Whatever was made up, as a body of lines."""
    if isinstance(value, bytes):
        return value
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else json.dumps(value).encode()


# Of what JSON Schema calls valid, refused by rules that it cannot say: then, and only then, `positive_data_acceptance` is not asked.
BEYOND_SCHEMA = (
    "environment and version go together",
    "task needs its environment and version",
    "is not a cursor that this list gave",
    "is not this log's",  # the epoch of a feed
    "was never logged: the log ends at",
    "nothing to add",  # a PATCH of no field
    "the body has the sha256",
    "belongs to no project, every other key to one",
    "got `float`",  # 3.0 is an integer to JSON Schema, not to us
    "a value cannot be stored",  # \u0000 in a text
    "give one of listing, task and failure",
    "reward.",  # contradictions within a declaration
)

# The door reads the envelope alone: what breaks the rules inside the document or the tokens is taken, and becomes a defect of the record.
LEFT_TO_THE_WORKER = "POST /v1/trajectories"

# Names of environments, tasks and runs may hold slashes, so `PUT /v1/runs/a/steps` speaks of the run `a/steps`: such an
# address has more methods than its description tells.
GREEDY = ("/v1/environments/{environment}", "/v1/runs/{run}")


@pytest.fixture(scope="module")
def house(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Where nobody waits: `wait` would be honoured thousands of times."""
    with serving(module_database, tmp_path_factory.mktemp("store"), limits=Limits(requests_per_minute=MANY, waiters=0)) as served:
        yield served


def bounded(examples: int) -> settings:
    """The same examples in every run, and nothing written down."""
    return settings(
        max_examples=examples, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
    )


def holder_of(operation: schemathesis.schemas.APIOperation) -> str:
    """Somebody who may."""
    roles = operation.definition.raw.get("x-roles", ["owner"])
    return HOLDERS["owner" if "owner" in roles else roles[0]]


def hold_to_the_page(house: House, case: schemathesis.Case, holder: str) -> None:
    response = case.call(base_url=str(house.client.base_url), headers=house.auth(holder))
    case.validate_response(response, excluded_checks=not_asked(case, response))


def not_asked(case: schemathesis.Case, response: schemathesis.Response) -> list[schemathesis.CheckFunction]:
    names = []
    if response.status_code in (410, 422) and any(reason in response.text for reason in BEYOND_SCHEMA):
        names.append("positive_data_acceptance")
    if case.operation.label == LEFT_TO_THE_WORKER and response.status_code in (200, 201):
        names.append("negative_data_rejection")
    if case.operation.path.startswith(GREEDY):
        names += ["unsupported_method", "allow_header_conformance"]
    return [CHECKS.get_one(name) for name in names]


@SCHEMA.parametrize()
@bounded(4)
def test_who_may_call_gets_what_the_page_says(house: House, case: schemathesis.Case) -> None:
    hold_to_the_page(house, case, holder_of(case.operation))


@pytest.mark.parametrize("role", HOLDERS)
def test_whoever_calls_gets_what_the_page_says(house: House, role: str) -> None:
    for operation in OPERATIONS.values():
        roles = operation.definition.raw.get("x-roles", [])
        if role not in roles or HOLDERS[role] != holder_of(operation):
            attack(house, operation, HOLDERS[role], 2)


def attack(house: House, operation: schemathesis.schemas.APIOperation, holder: str, examples: int) -> None:
    @bounded(examples)
    @given(case=operation.as_strategy())
    def each(case: schemathesis.Case) -> None:
        hold_to_the_page(house, case, holder)

    each()


@pytest.mark.slow
@pytest.mark.parametrize("role", HOLDERS)
@SCHEMA.parametrize()
@bounded(60)
def test_nothing_is_found_by_trying_longer(house: House, case: schemathesis.Case, role: str) -> None:
    hold_to_the_page(house, case, HOLDERS[role])
