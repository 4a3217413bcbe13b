"""Every setting of the service, read once from the environment: `INSPECTOR_` + the field's name in capitals.

A secret may stand in a file: `INSPECTOR_DATABASE_URL_FILE=/run/secrets/database_url`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from inspector.errors import InspectorError

PREFIX = "INSPECTOR_"
T = TypeVar("T", bound=msgspec.Struct)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one request may cost; sizes in bytes."""

    body_bytes: int = 64 << 20
    inflated_bytes: int = 256 << 20
    line_bytes: int = 64 << 20
    envelope_bytes: int = 4 << 20  # of a line beside its document and its token arrays
    envelope_depth: int = 64
    zstd_window_bytes: int = 8 << 20
    in_flight_bytes: int = 192 << 20  # bodies being read or written at once, per process
    requests_per_minute: int = 2000  # per project
    artifact_bytes: int = 1 << 30
    waiters: int = 512  # long polls at once, per process


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The operator's choices. Below the doors, code takes values, not settings."""

    database_url: str = ""  # postgresql://…; empty means the embedded one
    redis_url: str = ""
    store_url: str = ""  # file:///… where segments and artifacts live
    host: str = "127.0.0.1"
    port: int = 8642
    dashboard_port: int = 8643
    workers: int = 2  # Celery child processes for audits
    fast_deadline_s: float = 10.0  # after which a block of checks is given up and bisected
    lease_s: float = 30.0
    heartbeat_s: float = 5.0
    sweep_s: float = 5.0
    group_quiet_s: float = 60.0  # a group without new members for so long is taken as complete
    late_deadline_s: float = 600.0  # a late check that has not answered by then is not assessed
    flush_ms: float = 5.0
    flush_posts: int = 256
    flush_bytes: int = 1 << 20
    segment_bytes: int = 256 << 20  # a segment file is closed above this size
    feed_horizon: int = 1_000_000  # decisions kept per project before a cursor must restart from the snapshot
    retain_days: float = 0.0  # a trajectory, with its segment and all that was said of it but reviews, is kept so long; 0 keeps everything
    retain_every_s: float = 3600.0  # how often what is too old is looked for
    learn_every_s: float = 60.0  # how often projects are looked for of which enough is new to learn from
    hold_s: float = 30.0
    replay_paid_share: float = 0.05  # of paid trajectories with a final state, how much is graded again
    replay_unpaid_share: float = 0.01  # of unpaid ones
    spot_check_share: float = 0.01  # of all trajectories, how much people are asked to look at whatever the checks say
    calibrate_every_s: float = 60.0  # how often projects are looked for of which enough was judged to calibrate anew
    rollback_share: float = 0.02  # of an update's absolute reward, how much bad trajectories may carry before the run is advised to go back
    fleet_share: float = 0.05  # of an hour's training weight that may be quarantined in an hour without a person, beside one environment version
    enforcement_stop_share: float = 0.20
    enforcement_stop_window: int = 1000
    checks: str = ""  # which of the installed ones judge what arrives: owners, patterns, names, with spaces between; empty means all
    policy_file: str = ""  # empty means inspector/policies/default.toml
    api_url: str = ""  # of a sandbox worker: where it asks for work
    prober_key: str = ""  # of a sandbox worker: its key, of role prober
    sandbox_folder: str = ""  # of a sandbox worker: where packages are unpacked; empty means a folder for temporary files
    webhook_key: str = ""  # of which the secrets of webhooks are made; without it there are none
    egress_allow: str = ""  # hosts, and networks as 10.0.0.0/8, that may be called though they are not public; with spaces between
    egress_ports: str = "443"
    egress_plain: bool = False  # http may be called too
    egress_deadline_s: float = 15.0  # of one call
    egress_authorities: str = ""  # a file of certificates to trust in the place of the usual ones
    log_level: str = "info"
    limits: Limits = Limits()

    @property
    def store_path(self) -> Path:
        """The folder of a `file://` store."""
        return Path(self.store_url.removeprefix("file://"))


class BadSetting(InspectorError):
    """A variable of the environment that cannot be read as its setting."""


def load(environ: Mapping[str, str] = os.environ) -> Settings:
    """Read `INSPECTOR_*`; limits as `INSPECTOR_LIMIT_BODY_BYTES`. Raises BadSetting naming the variable and its value."""
    limits = _read(Limits, environ, PREFIX + "LIMIT_")
    return msgspec.structs.replace(_read(Settings, environ, PREFIX), limits=limits)


def _read(kind: type[T], environ: Mapping[str, str], prefix: str) -> T:
    values = {}
    for field in msgspec.structs.fields(kind):
        variable = prefix + field.name.upper()
        if field.name == "limits" or (text := _text(environ, variable)) is None:
            continue
        try:
            values[field.name] = msgspec.convert(text, field.type, strict=False)
        except msgspec.ValidationError as error:
            raise BadSetting(f"{variable}={text!r}: {error}") from error
    return kind(**values)


def _text(environ: Mapping[str, str], variable: str) -> str | None:
    """What the variable says, else the one line of the file that VARIABLE_FILE names."""
    if variable in environ or not (file := environ.get(variable + "_FILE")):
        return environ.get(variable)
    try:
        return Path(file).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSetting(f"{variable}_FILE={file!r}: {error}") from error
