"""The page that describes the API."""

from __future__ import annotations

import msgspec
import pytest

from inspector.api import create_app
from inspector.settings import Settings
from inspector.verdict import Cause


@pytest.fixture(scope="module")
def page():
    return create_app(Settings()).openapi()


def operations(page):
    return [(f"{method.upper()} {path}", operation) for path, methods in page["paths"].items() for method, operation in methods.items()]


def test_every_reference_leads_somewhere(page):
    def references(value):
        if isinstance(value, dict):
            yield from ([value["$ref"]] if "$ref" in value else [])
            for inner in value.values():
                yield from references(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from references(inner)

    found = set(references(page))
    assert "#/components/schemas/Posted" in found
    for reference in found:
        assert reference.removeprefix("#/components/schemas/") in page["components"]["schemas"], reference


def test_every_operation_tells_its_refusals_and_its_roles(page):
    for name, operation in operations(page):
        assert {"422", "503"} <= operation["responses"].keys(), name
        if "/v1/" in name and "exchange" not in name:
            assert operation["security"], name
            assert operation["x-roles"], name
        if "requestBody" in operation:
            assert {"400", "408", "413", "415", "422"} <= operation["responses"].keys(), name
            assert "application/json" in operation["requestBody"]["content"]


def test_a_review_is_described_with_the_causes_that_it_may_name(page):
    schemas = page["components"]["schemas"]
    assert "cause" in schemas["ReviewRequest"]["properties"]
    assert "cause" in schemas["ReviewLine"]["properties"]
    assert set(schemas["Cause"]["enum"]) == set(Cause)


def test_the_page_is_json_and_is_served(house, page):
    served = house.client.get("/v1/openapi.json")
    assert served.status_code == 200
    assert msgspec.json.decode(served.content)["paths"].keys() == page["paths"].keys()
