"""Rules about task.toml and the layout of the folder."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import partial
from itertools import pairwise

from inspector.environments.harbor.config import unknown_fields
from inspector.environments.lint.hints import DOCKERFILE, INSTRUCTION, SOLVE, TASK, TEST, Found, Rules, Subject, rule_of

RULES: Rules = []
rule = partial(rule_of, RULES)
DAY_S = 86_400
MINUTES = 30  # a limit below that many seconds was perhaps meant in minutes
LEFTOVER = re.compile(r"(?:^|/)(?:__pycache__/|[^/]+\.pyc$|\.DS_Store$|\.pytest_cache/|[^/]+\.sw[op]$|[^/]+~$)")
KEYS = (
    r"AKIA[0-9A-Z]{16}",
    r"-----BEGIN (?:RSA |EC |OPENSSH )?PRIVATE KEY-----",
    r"\bsk-[A-Za-z0-9_-]{24,}",
    r"\b(?:ghp|hf)_[A-Za-z0-9]{30,}",
    r"\bxox[bp]-[\w-]{20,}",
)
SECRET = re.compile("|".join(KEYS))
NETWORK = re.compile(r"\b(?:curl|wget|git\s+clone|pip3?\s+install|npm\s+(?:i|install)|apt(?:-get)?\s+install|uvx|uv\s+(?:add|pip|run))\b")


@rule("missing-required-file", proved_by="reference")
def missing_required_file(subject: Subject) -> Iterator[Found]:
    """A file that every task needs is not there."""
    for path in (TASK, INSTRUCTION, DOCKERFILE, SOLVE, TEST):
        given = path == DOCKERFILE and (subject.section("environment").get("docker_image") or "environment/docker-compose.yaml" in subject.tree)
        if path not in subject.tree and not given:
            yield Found(path, 1, f"{path} is missing")


@rule("invalid-task-config", proved_by="reference")
def invalid_task_config(subject: Subject) -> Iterator[Found]:
    """task.toml is there and says nothing that can be read."""
    if TASK in subject.tree and not subject.config:
        yield Found(TASK, 1, "no readable TOML, or empty")


@rule("unknown-config-field", proved_by="reference")
def unknown_config_field(subject: Subject) -> Iterator[Found]:
    """A field that no schema up to 1.4 knows is silently without effect."""
    for name in unknown_fields(subject.config):
        yield Found(TASK, subject.line_of(TASK, name.rpartition(".")[2]), f"unknown field {name[:100]}")


@rule("timeout-out-of-range", proved_by="reference")
def timeout_out_of_range(subject: Subject) -> Iterator[Found]:
    """A time limit that is none, longer than a day, or perhaps minutes in place of seconds."""
    for section in ("agent", "verifier"):
        value = subject.section(section).get("timeout_sec")
        if isinstance(value, int | float) and not MINUTES <= value <= DAY_S:
            yield Found(TASK, subject.line_of(TASK, f"[{section}]"), f"{section}.timeout_sec = {value}: outside of {MINUTES} to {DAY_S} seconds")


@rule("agent-below-verifier-timeout", proved_by="reference")
def agent_below_verifier_timeout(subject: Subject) -> Iterator[Found]:
    """The agent gets less time than the verifier of its work."""
    agent, verifier = subject.section("agent").get("timeout_sec"), subject.section("verifier").get("timeout_sec")
    if isinstance(agent, int | float) and isinstance(verifier, int | float) and agent < verifier:
        yield Found(TASK, subject.line_of(TASK, "[agent]"), f"agent.timeout_sec = {agent} is less than verifier.timeout_sec = {verifier}")


@rule("placeholder-zero-resource", proved_by="reference")
def placeholder_zero_resource(subject: Subject) -> Iterator[Found]:
    """A resource of 0 is a placeholder that was never filled in."""
    for name in ("cpus", "memory_mb", "storage_mb"):
        value = subject.section("environment").get(name)
        if isinstance(value, int | float) and value <= 0:
            yield Found(TASK, subject.line_of(TASK, name), f"environment.{name} = {value}")


@rule("internet-flag-contradiction", proved_by="reference")
def internet_flag_contradiction(subject: Subject) -> Iterator[Found]:
    """The environment is declared without a network, and its scripts reach for one."""
    environment = subject.section("environment")
    if environment.get("network_mode") == "no-network" or environment.get("allow_internet") is False:
        for path in (SOLVE, TEST):
            for number, line in enumerate(subject.text(path).splitlines(), 1):
                if (found := NETWORK.search(line)) and not line.lstrip().startswith("#"):
                    yield Found(path, number, f"{found[0]!r} needs a network, which task.toml takes away")


@rule("shared-verifier", proved_by="exploit/conftest_hook")
def shared_verifier(subject: Subject) -> Iterator[Found]:
    """What the agent leaves is there while its work is graded."""
    if subject.config and not subject.separate:
        yield Found(TASK, subject.line_of(TASK, "[verifier]"), 'verifier.environment_mode is not "separate"')


@rule("overlapping-artifacts", proved_by="reference")
def overlapping_artifacts(subject: Subject) -> Iterator[Found]:
    """One artifact lies inside another, or among the logs, and one of the two is lost."""
    listed = subject.config.get("artifacts", [])
    sources = [each.get("source") if isinstance(each, dict) else each for each in listed] if isinstance(listed, list) else []
    paths = sorted(posixpath.normpath(each) for each in sources if isinstance(each, str))
    for path in paths:
        if path.startswith("/logs/verifier"):
            yield Found(TASK, subject.line_of(TASK, path), f"artifact {path[:100]} lies among the verifier's logs")
    for first, second in pairwise(paths):
        if second == first or second.startswith(f"{first}/"):
            yield Found(TASK, subject.line_of(TASK, second), f"artifact {second[:100]} overlaps {first[:100]}")


@rule("leftover-files", proved_by="exploit/hidden_file")
def leftover_files(subject: Subject) -> Iterator[Found]:
    """Caches and backups of the author's machine, which may hold what the task hides."""
    for file in subject.tree.files:
        if LEFTOVER.search(file.path):
            yield Found(file.path, 1, "left over from the author's machine")


@rule("crlf-script", proved_by="reference")
def crlf_script(subject: Subject) -> Iterator[Found]:
    """A shell script with line ends that no shell reads."""
    for file in subject.tree.files:
        if file.path.endswith(".sh") and "\r\n" in (text := subject.text(file.path)):
            yield Found(file.path, text[: text.index("\r\n")].count("\n") + 1, "line ends of another system (CR LF)")


@rule("secret-baked", proved_by="exploit/hidden_file")
def secret_baked(subject: Subject) -> Iterator[Found]:
    """A key that looks real lies in the folder, where the agent may find it."""
    for file in subject.tree.files:
        for number, line in enumerate(subject.text(file.path).splitlines(), 1):
            if found := SECRET.search(line):
                yield Found(file.path, number, f"looks like a key: {found[0][:8]}…")


@rule("compose-privileged", proved_by="exploit/hidden_file")
def compose_privileged(subject: Subject) -> Iterator[Found]:
    """A service that may do on the host what no sandbox allows."""
    for name in ("environment/docker-compose.yaml", "environment/docker-compose.yml"):
        for number, line in enumerate(subject.text(name).splitlines(), 1):
            if re.search(r"^\s*(?:privileged:\s*(?:true|yes)|cap_add:|network_mode:\s*[\"']?host|pid:\s*[\"']?host|.*/var/run/docker\.sock)", line):
                yield Found(name, number, f"{line.strip()[:80]!r} opens the host to the agent")
