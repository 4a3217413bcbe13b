"""The part of the SARIF 2.1.0 schema that our reports use, closed: a property that it does not name is a mistake."""

from typing import Any


def closed(required: str, optional: str = "", **of: Any) -> dict[str, Any]:
    names = [*required.split(), *optional.split()]
    return {"type": "object", "additionalProperties": False, "required": required.split(), "properties": {name: of.get(name, {}) for name in names}}


def many(inside: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": inside, **more}


STRING = {"type": "string"}
BAG = {"type": "object"}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
MESSAGE = closed("text", text=STRING)
RULE = closed(
    "id",
    "name shortDescription fullDescription defaultConfiguration",
    id=STRING,
    name=STRING,
    shortDescription=MESSAGE,
    fullDescription=MESSAGE,
    defaultConfiguration=closed("level", level=LEVEL),
)
DRIVER = closed("name", "version rules", name=STRING, version=STRING, rules=many(RULE, uniqueItems=True))
ARTIFACT = closed("uri", "uriBaseId", uri={"type": "string", "pattern": r"^[!#-;=?-\[\]_a-z~]*$"}, uriBaseId=STRING)
PHYSICAL = closed("artifactLocation", "region", artifactLocation=ARTIFACT, region=closed("startLine", startLine={"type": "integer", "minimum": 1}))
LOGICAL = closed("fullyQualifiedName", "kind", fullyQualifiedName=STRING, kind=STRING)
LOCATION = closed("", "physicalLocation logicalLocations", physicalLocation=PHYSICAL, logicalLocations=many(LOGICAL, uniqueItems=True))
RESULT = closed(
    "message",
    "ruleId ruleIndex level locations partialFingerprints properties baselineState",
    message=MESSAGE,
    ruleId=STRING,
    ruleIndex={"type": "integer", "minimum": -1},
    level=LEVEL,
    locations=many(LOCATION),
    partialFingerprints={"type": "object", "additionalProperties": STRING},
    properties=BAG,
    baselineState={"enum": ["new", "unchanged", "updated", "absent"]},
)
NOTIFICATION = closed("message", "level", message=MESSAGE, level=LEVEL)
INVOCATION = closed("executionSuccessful", "toolExecutionNotifications", executionSuccessful={"type": "boolean"}, toolExecutionNotifications=many(NOTIFICATION))
RUN = closed(
    "tool",
    "automationDetails columnKind invocations results properties",
    tool=closed("driver", driver=DRIVER),
    automationDetails=closed("id", id=STRING),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    invocations=many(INVOCATION),
    results=many(RESULT),
    properties=BAG,
)
LOG = closed("version runs", "$schema", version={"const": "2.1.0"}, runs=many(RUN), **{"$schema": STRING})
