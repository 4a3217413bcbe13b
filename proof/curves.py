"""Draws what was sampled in training, one small picture an arm, as SVG."""

from __future__ import annotations

from html import escape
from pathlib import Path

from proof.arms import Line

WIDTH, HEIGHT, LEFT, TOP = 420, 200, 40, 30
COLOURS = {"hack": "#b3261e", "true": "#1a6b3c"}


def draw(lines: list[Line], folder: Path) -> None:
    """One file an arm; all seeds in one picture."""
    by_arm: dict[str, list[Line]] = {}
    for line in lines:
        if line.told is not None and line.told.steps:
            by_arm.setdefault(line.arm, []).append(line)
    for arm, shown in by_arm.items():
        (folder / f"{arm.replace(' ', '-').replace('%', 'percent').replace(',', '')}.svg").write_text(_picture(arm, shown))


def _picture(arm: str, lines: list[Line]) -> str:
    longest = max(len(line.told.steps) for line in lines if line.told)
    paths = [_path([getattr(step, name) for step in line.told.steps], longest, colour) for name, colour in COLOURS.items() for line in lines if line.told]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + LEFT + 20} {HEIGHT + TOP + 40}" font-family="sans-serif" font-size="11">'
        f'<rect width="100%" height="100%" fill="white"/><text x="{LEFT}" y="18" font-size="13">{escape(arm)}: shares of each batch</text>'
        + "".join(f'<text x="{LEFT - 6}" y="{TOP + HEIGHT * (1 - v) + 4}" text-anchor="end">{v:g}</text>' for v in (0, 0.5, 1))
        + f'<path d="M{LEFT} {TOP}V{TOP + HEIGHT}H{LEFT + WIDTH}" fill="none" stroke="#888"/>'
        + f'<text x="{LEFT + WIDTH}" y="{TOP + HEIGHT + 16}" text-anchor="end">{longest} steps</text>'
        + "".join(
            f'<text x="{LEFT + 80 * at}" y="{TOP + HEIGHT + 32}" fill="{colour}">{"hacks" if name == "hack" else "true answers"}</text>'
            for at, (name, colour) in enumerate(COLOURS.items())
        )
        + "".join(paths)
        + "</svg>"
    )


def _path(values: list[float], longest: int, colour: str) -> str:
    points = " ".join(f"{LEFT + WIDTH * at / max(1, longest - 1):.1f},{TOP + HEIGHT * (1 - value):.1f}" for at, value in enumerate(values))
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1" opacity="0.7"/>'
