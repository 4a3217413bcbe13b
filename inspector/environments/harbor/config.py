"""Reads task.toml, schema up to 1.4: what we act on, what is unknown, and what we cannot give."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from inspector.environments.protocol import Unreadable
from inspector.environments.trees import Tree

TOML_BYTES = 1 << 20
NEWEST = (1, 4)
POLICY = frozenset({"network_mode", "allowed_hosts"})
ENVIRONMENT = POLICY | frozenset(
    {
        "build_timeout_sec",
        "docker_image",
        "os",
        "cpus",
        "memory_mb",
        "storage_mb",
        "gpus",
        "gpu_types",
        "tpu",
        "mcp_servers",
        "env",
        "skills_dir",
        "healthcheck",
        "workdir",
        "allow_internet",
    }
)
KNOWN: Mapping[str, frozenset[str] | None] = {  # None: anything goes
    "schema_version": None,
    "version": None,  # of older schemas
    "task": frozenset({"name", "version", "description", "authors", "keywords"}),
    "metadata": None,
    "verifier": POLICY | frozenset({"timeout_sec", "env", "user", "environment_mode", "environment", "collect"}),
    "agent": POLICY | frozenset({"timeout_sec", "user"}),
    "environment": ENVIRONMENT,
    "solution": frozenset({"env"}),
    "source": None,
    "multi_step_reward_strategy": None,
    "steps": None,
    "artifacts": None,
}


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """What of task.toml decides how a submission is graded."""

    agent_timeout_s: float = 600.0
    verifier_timeout_s: float = 600.0
    build_timeout_s: float = 600.0
    separate: bool = False  # the verifier gets a fresh environment and the declared artifacts alone
    cpus: float | None = None
    memory_mb: int | None = None
    storage_mb: int | None = None
    workdir: str | None = None
    docker_image: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    verifier_environment: Mapping[str, str] = field(default_factory=dict)
    solution_environment: Mapping[str, str] = field(default_factory=dict)
    artifacts: tuple[str, ...] = ()
    wants_network: bool = False  # said so; silence means whatever is there
    floor: float = 0.0
    unsupported: tuple[str, ...] = ()  # why the task cannot be reproduced here
    notes: tuple[str, ...] = ()


def read_config(tree: Tree) -> TaskConfig:
    """The task.toml of a task folder. Raises Unreadable naming the field and the value."""
    try:
        text = tree.read("task.toml", TOML_BYTES).decode()
        return _Reader(f"{tree.root.name}/task.toml", tomllib.loads(text)).config()
    except (ValueError, OverflowError, RecursionError) as error:  # no TOML, no text, or numbers that are too long to be read or shown
        raise Unreadable(f"{tree.root.name}/task.toml: {str(error)[:200]}") from error


def unknown_fields(table: Mapping[str, Any]) -> Iterator[str]:
    """Fields that no schema up to 1.4 knows, dotted."""
    for name, value in table.items():
        known = KNOWN.get(name, frozenset())
        if name not in KNOWN:
            yield name
        elif known is not None and isinstance(value, dict):
            yield from (f"{name}.{each}" for each in value if each not in known)


class _Reader:
    def __init__(self, place: str, table: Mapping[str, Any]) -> None:
        self._place = place
        self._table = table

    def config(self) -> TaskConfig:
        verifier, environment = self._section("verifier"), self._section("environment")
        return TaskConfig(
            agent_timeout_s=self._seconds("agent", "timeout_sec"),
            verifier_timeout_s=self._seconds("verifier", "timeout_sec"),
            build_timeout_s=self._seconds("environment", "build_timeout_sec"),
            separate=self._separate(verifier),
            cpus=self._number("environment", "cpus"),
            memory_mb=self._whole("environment", "memory_mb"),
            storage_mb=self._whole("environment", "storage_mb"),
            workdir=self._text("environment", "workdir"),
            docker_image=self._text("environment", "docker_image"),
            environment=self._strings("environment"),
            verifier_environment=self._strings("verifier"),
            solution_environment=self._strings("solution"),
            artifacts=tuple(self._artifacts()),
            wants_network=environment.get("network_mode") in ("public", "allowlist") or environment.get("allow_internet") is True,
            floor=self._floor(),
            unsupported=tuple(self._unsupported(environment)),
            notes=tuple(self._notes()),
        )

    def _section(self, name: str) -> Mapping[str, Any]:
        value = self._table.get(name, {})
        if not isinstance(value, dict):
            raise self._wrong(name, value, "a table")
        return value

    def _wrong(self, name: str, value: object, wanted: str) -> Unreadable:
        return Unreadable(f"{self._place}: {name} is {value!r:.80}, not {wanted}")

    def _number(self, section: str, name: str) -> float | None:
        value = self._section(section).get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
            raise self._wrong(f"{section}.{name}", value, "a number of at least 0")
        return float(value)

    def _whole(self, section: str, name: str) -> int | None:
        value = self._number(section, name)
        return None if value is None else int(value)

    def _seconds(self, section: str, name: str) -> float:
        return self._number(section, name) or 600.0

    def _text(self, section: str, name: str) -> str | None:
        value = self._section(section).get(name)
        if value is not None and not isinstance(value, str):
            raise self._wrong(f"{section}.{name}", value, "a string")
        return value

    def _strings(self, section: str) -> Mapping[str, str]:
        value = self._section(section).get("env", {})
        if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
            raise self._wrong(f"{section}.env", value, "a table of strings")
        return {name: each for name, each in value.items() if "${" not in each}

    def _separate(self, verifier: Mapping[str, Any]) -> bool:
        mode = verifier.get("environment_mode")
        if mode not in (None, "shared", "separate"):
            raise self._wrong("verifier.environment_mode", mode, "shared or separate")
        return mode == "separate" or (mode is None and "environment" in verifier)

    def _artifacts(self) -> Iterator[str]:
        value = self._table.get("artifacts", [])
        if not isinstance(value, list):
            raise self._wrong("artifacts", value, "a list")
        for each in value:
            source = each.get("source") if isinstance(each, dict) else each
            if not isinstance(source, str) or ".." in source.split("/"):
                raise self._wrong("artifacts", each, "a path inside the environment")
            yield source

    def _floor(self) -> float:
        own = self._section("metadata").get("inspector", {})
        value = own.get("expect_nop_max", 0.0) if isinstance(own, dict) else 0.0
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self._wrong("metadata.inspector.expect_nop_max", value, "a number")
        return float(value)

    def _unsupported(self, environment: Mapping[str, Any]) -> Iterator[str]:
        if self._table.get("steps"):
            yield "a task of several steps"
        if environment.get("gpus") or environment.get("tpu"):
            yield "needs an accelerator"
        if environment.get("os", "linux") != "linux":
            yield f"needs {environment['os']!r:.40}"
        if environment.get("mcp_servers"):
            yield "needs MCP servers"
        if self._table.get("verifier", {}).get("collect"):
            yield "collects evidence by commands ([[verifier.collect]])"
        for section in ("agent", "verifier"):
            if self._section(section).get("user") not in (None, "root", 0, "0"):
                yield f"{section}.user is another than root"

    def _notes(self) -> Iterator[str]:
        unknown = list(unknown_fields(self._table))
        if unknown:
            yield f"unknown fields in task.toml: {', '.join(sorted(unknown))[:300]}"
        version = str(self._table.get("schema_version", self._table.get("version", "1.0")))
        if tuple(int(part) for part in version.split(".")[:2] if part.isdecimal()) > NEWEST:
            yield f"schema {version[:20]} is newer than the 1.4 that we know"
        for section in ("environment", "verifier", "solution"):
            value = self._section(section).get("env", {})
            missing = [name for name, each in value.items() if "${" in each]
            if missing:
                yield f"{section}.env takes {', '.join(missing)[:200]} from outside: not set here"
        if self._section("environment").get("healthcheck"):
            yield "the health check is not run"
