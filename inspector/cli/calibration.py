"""`inspector calibration`: how good each check is by what people judged, and whether a probability means what it says."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from inspector.cli.inputs import Json
from inspector.cli.output import json_line, say, table
from inspector.cli.service import Data, Key, Url, connected

Name = Annotated[str, typer.Argument(help="One check; all where none is named.")]


def show_calibration(name: Name = "", url: Url = "", key: Key = "", data: Data = None, json: Json = False) -> None:
    """Precision and recall of the checks, the model that holds, its errors, and the thresholds that the costs give."""
    with connected(url, key, data, role="owner") as api:
        told = api.get("/v1/calibration")
    found = [one for one in told["checks"] if name in ("", one["check"], one["check"].partition("/")[2])]
    if not found:
        raise typer.BadParameter(f"no check is named {name!r}")
    if json:
        json_line({**told, "checks": found})
        return
    for line in _lines(told):
        say(line)
    say("")
    columns = ("check", "labels", "right", "wrong", "precision", "at least", "caught", "missed", "recall", "at least", "proves")
    table(columns, [_row(one) for one in found])


def _lines(told: dict[str, Any]) -> list[str]:
    limits = told["thresholds"]
    lines = [f"policy {told['policy']}: quarantine from {limits['quarantine']:.3g}, flag from {limits['flag']:.3g}, proof from {limits['proof']:.3g}"]
    if told["version"] is None:
        return [*lines, "nothing was learnt from labels yet: the policy's priors hold"]
    lines.append(f"model {told['version']} ({told['digest'][:8]}): {told['stage']}, {told['labels']} labels, {told['positives']} bad; {told['why']}")
    if measured := told["measured"]:
        lines.append(f"log loss {measured['log_loss']:.4f}, without labels {measured['raw_log_loss']:.4f}")
        lines += [f"{what} {_interval(measured[field])}" for what, field in (("Brier score", "brier"), ("calibration error", "ece"))]
    return lines


def _interval(figure: dict[str, float]) -> str:
    return f"{figure['value']:.4f} ({figure['low']:.4f} to {figure['high']:.4f})"


def _row(one: dict[str, Any]) -> tuple[Any, ...]:
    precision = one["precision"] or {}
    counts = [f"{one[field]:.1f}" for field in ("right", "wrong", "caught", "missed")]
    shares = [f"{share:.3f}" if share is not None else None for share in (precision.get("mean"), precision.get("lower"))]
    recall = [f"{one['recall'][field]:.3f}" for field in ("mean", "lower")]
    return (f"{one['check']}@{one['version']}", one["labels"], *counts[:2], *shares, *counts[2:], *recall, "yes" if one["proves"] else "")
