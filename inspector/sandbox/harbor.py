"""Boxes by Harbor's environments (docker, podman, kata and the rest), for tasks that need an image or what only root may do."""

from __future__ import annotations

import asyncio
import secrets
import shlex
import tempfile
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from inspector.errors import MissingExtra
from inspector.sandbox.files import parts_of
from inspector.sandbox.protocol import Box, Broken, Capabilities, Diff, Ended, Layer, Limits, Network, Refused, Result

T = TypeVar("T")
DEFAULT = Limits()
MARGIN_S = 30.0  # beyond a command's own time limit, for the other side to say that it was reached
SETTLE_S = 120.0  # for whatever is no command
TIMED_OUT, KILLED = 124, 137  # as timeout(1) says
LIMITS = {"pids": "no way to bound processes", "inodes": "no way to bound files", "processes": "no way to end what a command left, but to end the box"}
FAILURES = (OSError, RuntimeError, ValueError, TimeoutError)  # what Harbor's environments raise
WRAPPED = 'cd -- "$1" && shift && exec timeout -k 2 "$@"'


def _harbor() -> Any:
    try:
        import harbor.environments.factory
        import harbor.models.environment_type
        import harbor.models.task.config
        import harbor.models.trial.config
        import harbor.models.trial.paths
    except ImportError as error:
        raise MissingExtra("a box by Harbor", "harbor") from error
    return harbor


class Harbor:
    """Makes boxes of one image by one of Harbor's environments.

    What Harbor cannot give (see `LIMITS`) is refused, but for what the operator says by `without` that he does without.
    """

    def __init__(
        self, kind: str, image: str, *, without: frozenset[str] = frozenset(), network: bool = False, options: Mapping[str, Any] | None = None
    ) -> None:
        self.kind, self.image, self.without = kind, image, without  # `kind`: a type as "docker", or "module:class"
        self._network = frozenset(Network) if network else frozenset({Network.OFF})
        self._options = dict(options or {})

    @cached_property
    def capabilities(self) -> Capabilities:
        """By what Harbor says of this environment; a machine without its daemon is found out by the first box."""
        missing = {name: why for name, why in LIMITS.items() if name not in self.without}
        return Capabilities(f"harbor {self.kind}", snapshot=False, network=self._network, root=True, services=True, missing=missing)

    def create(
        self,
        layers: Sequence[Layer] = (),
        *,
        limits: Limits = DEFAULT,
        network: Network = Network.OFF,
        environment: Mapping[str, str] | None = None,
        cwd: str = "/",
        session: bool = False,
    ) -> Box:
        """A box of the image. Raises Refused and Broken."""
        self._check(layers, network, session)
        stack = ExitStack()
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="box-")))
        runner = stack.enter_context(asyncio.Runner())
        with stack.pop_all() as held:
            inner = self._environment(folder, limits, network)
            try:
                runner.run(inner.start(force_build=False))
            except FAILURES as error:
                raise Broken(f"{self.kind}: no box: {error}") from error
            stack = held.pop_all()
        return HarborBox(inner, runner, stack, folder, limits, dict(environment or {}), cwd)

    def _check(self, layers: Sequence[Layer], network: Network, session: bool) -> None:
        if layers:
            raise Refused("a box by Harbor stands on an image, not on layers")
        if network not in self._network:
            raise Refused("the operator gives boxes no network")
        lacking = [f"{name}: {why}" for name, why in self.capabilities.missing.items() if not (session and name == "processes")]
        if lacking:
            raise Refused(f"harbor {self.kind}: {'; '.join(lacking)}")

    def _environment(self, folder: Path, limits: Limits, network: Network) -> Any:
        """Harbor's object, told to hold limits or to raise. Raises Refused where it does not offer them."""
        harbor = _harbor()
        config, trial = harbor.models.task.config, harbor.models.trial.config
        for name in ("environment", "trial"):
            (folder / name).mkdir()
        task = config.EnvironmentConfig(
            docker_image=self.image, cpus=limits.cpus, memory_mb=max(1, limits.memory_bytes >> 20), storage_mb=max(1, limits.disk_bytes >> 20)
        )
        mode = config.NetworkMode.PUBLIC if network is Network.ON else config.NetworkMode.NO_NETWORK
        given: dict[str, Any] = {
            "environment_dir": folder / "environment",
            "environment_name": "box",
            "session_id": f"box-{secrets.token_hex(6)}",
            "trial_paths": harbor.models.trial.paths.TrialPaths(folder / "trial"),
            "task_env_config": task,
            "cpu_enforcement_policy": trial.ResourceMode.LIMIT,
            "memory_enforcement_policy": trial.ResourceMode.LIMIT,
            "network_policy": config.NetworkPolicy(network_mode=mode),
            **self._options,
        }
        make = harbor.environments.factory.EnvironmentFactory
        try:
            if ":" in self.kind:
                return make.create_environment_from_import_path(self.kind, **given)
            return make.create_environment(type=harbor.models.environment_type.EnvironmentType(self.kind), **given)
        except FAILURES as error:
            raise Refused(f"harbor {self.kind}: {error}") from error


@dataclass(slots=True)
class HarborBox:
    """One of Harbor's environments as a box."""

    inner: Any
    runner: asyncio.Runner
    stack: ExitStack
    folder: Path
    limits: Limits
    environment: dict[str, str]
    cwd: str
    inputs: int = field(default=0)

    def run(
        self, argv: Sequence[str], *, timeout_s: float | None = None, stdin: bytes = b"", cwd: str | None = None, environment: Mapping[str, str] | None = None
    ) -> Result:
        """Run a command to its end. What it started may live on; outputs come as text, and are put back into bytes."""
        limit = self.limits.wall_s if timeout_s is None else timeout_s
        command = shlex.join(["/bin/sh", "-c", WRAPPED, "sh", cwd or self.cwd, f"{limit:.3f}", *argv])
        command += f" < {shlex.quote(self._input(stdin))}" if stdin else " < /dev/null"
        began = time.monotonic()
        done = self._wait(self.inner.exec(command, env={**self.environment, **(environment or {})}, timeout_sec=int(limit + MARGIN_S)), limit + 2 * MARGIN_S)
        return self._result(done, time.monotonic() - began, limit)

    def _input(self, stdin: bytes) -> str:
        self.inputs += 1
        place = f"/tmp/.input-{self.inputs}"  # noqa: S108 - a place in the box
        self.write(place, stdin)
        return place

    def _result(self, done: Any, wall_s: float, limit: float) -> Result:
        stdout, stderr = ((text or "").encode(errors="surrogateescape") for text in (done.stdout, done.stderr))
        code, keep = done.return_code, self.limits.output_bytes
        ended = Ended.EXITED if code < 128 else Ended.SIGNALLED
        if code in (TIMED_OUT, KILLED) and wall_s >= limit:
            ended = Ended.TIMED_OUT
        return Result(
            ended=ended,
            exit_code=code if ended is Ended.EXITED else None,
            stdout=stdout[:keep],
            stderr=stderr[:keep],
            dropped_bytes=max(0, len(stdout) - keep) + max(0, len(stderr) - keep),
            wall_s=wall_s,
            cpu_s=0.0,  # Harbor does not tell
            peak_bytes=None,
        )

    def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Put a file into the box."""
        target = "/" + "/".join(parts_of(path))
        source = self.folder / "sent"
        source.write_bytes(data)
        self._shell('mkdir -p -- "$(dirname -- "$1")" && rm -f -- "$1"', target)
        self._wait(self.inner.upload_file(source, target), SETTLE_S)
        self._shell('chmod "$2" "$1"', target, f"{mode & 0o777:o}")

    def _shell(self, script: str, *arguments: str) -> None:
        done = self._wait(self.inner.exec(shlex.join(["/bin/sh", "-c", script, "sh", *arguments]), timeout_sec=int(MARGIN_S)), SETTLE_S)
        if done.return_code:
            raise Refused(f"{arguments[0][:200]!r} cannot be written: {(done.stderr or done.stdout or '').strip()[:500]}")

    def read(self, path: str, limit: int) -> bytes | None:
        """A regular file's bytes, as the box tells them; its size is asked for first."""
        place = "/" + "/".join(parts_of(path))
        asked = shlex.join(["/bin/sh", "-c", 'test -f "$1" && test ! -L "$1" && stat -c %s -- "$1"', "sh", place])
        done = self._wait(self.inner.exec(asked, timeout_sec=int(MARGIN_S)), SETTLE_S)
        size = (done.stdout or "").strip()
        if done.return_code or not size.isdecimal():
            return None
        if int(size) > limit:
            raise Refused(f"{path[:200]!r} has {size} bytes, more than {limit}")
        target = self.folder / "received"
        self._wait(self.inner.download_file(place, target), SETTLE_S)
        data = target.read_bytes() if target.is_file() and not target.is_symlink() and target.stat().st_size <= limit else None
        target.unlink(missing_ok=True)
        return data

    def alive(self) -> frozenset[int]:
        """Not to be told from here."""
        raise Refused("harbor does not tell which processes live in a box")

    def diff(self) -> Diff:
        """Not to be had."""
        raise Refused("a box by Harbor does not tell what was changed")

    def snapshot(self) -> Layer:
        """Not to be had."""
        raise Refused("a box by Harbor cannot be kept")

    def _wait(self, work: Coroutine[Any, Any, T], limit_s: float) -> T:
        try:
            return self.runner.run(asyncio.wait_for(work, limit_s))
        except FAILURES as error:
            raise Broken(f"{self.inner.type()}: {error}") from error

    def __enter__(self) -> HarborBox:
        return self

    def __exit__(self, *_: object) -> None:
        with self.stack:
            self._wait(self.inner.stop(delete=True), SETTLE_S)
