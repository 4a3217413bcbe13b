"""A report as one page that needs nothing else: no script, no font, no image, and a policy that forbids all of them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from inspector.probe.words import EnvironmentReport, Outcome, TaskReport
from inspector.reports.articles import CLAIM, NAME, anchor, article, badge, badges, hints, named, tone
from inspector.reports.markup import Markup, tag, text
from inspector.reports.meanings import MEANINGS
from inspector.reports.probed import Cause, Probed, causes_of, evidence_of, worst_first
from inspector.reports.table import counted

TONES = {"grave": "broken or cheatable", "defect": "with a defect", "untold": "not judged", "sound": "sound"}


def html(probed: Probed) -> str:
    """The whole page."""
    title = ", ".join(environment.environment for environment in probed.environments)
    head = [
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_policy()}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="referrer" content="no-referrer">'),
        tag("title", text(f"Probe of {title}", limit=NAME)),
        tag("style", Markup(_style())),
    ]
    body = [
        *_interrupted(probed),
        *_overview(probed),
        *(part for environment in probed.environments for part in _environment(probed, environment)),
        _foot(probed),
    ]
    return f"<!doctype html>\n{tag('html', tag('head', *head), tag('body', tag('main', *body)), lang='en')}\n"


@cache
def _style() -> str:
    return (Path(__file__).parent / "page.css").read_text()


def _policy() -> str:
    """Nothing but our own style, known by its hash."""
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _interrupted(probed: Probed) -> list[Markup]:
    return [tag("p", text(f"Not whole: {probed.interruption.told()}."), class_="notice")] if probed.interruption else []


def _overview(probed: Probed) -> list[Markup]:
    """Where there is more than one environment: all of them at a glance."""
    if len(probed.environments) < 2:
        return []
    rows = [_overview_row(environment) for environment in probed.environments]
    return [tag("h1", counted(len(probed.environments), "environment")), _table(["environment", "#tasks", "outcomes"], rows, class_="stacked")]


def _overview_row(environment: EnvironmentReport) -> Markup:
    link = tag("a", text(environment.environment, limit=NAME), href=f"#{anchor(environment)}")
    counts = [badge(outcome, f"{outcome} {count}") for outcome, count in _counts(environment)]
    return tag("tr", tag("td", link), tag("td", str(len(environment.tasks)), class_="number"), tag("td", *counts))


def _environment(probed: Probed, environment: EnvironmentReport) -> list[Markup]:
    unsound = worst_first(environment)
    parts = [
        _head(probed, environment),
        *(tag("p", text(note, limit=CLAIM, lines=True), class_="notice") for note in environment.notes),
        _bar(environment),
        _scores(environment),
    ]
    if 0 < len(causes := causes_of(environment)) < len(unsound):
        parts += [tag("h2", "Causes"), _causes(causes)]
    if unsound:
        rows = [_unsound_row(environment, task) for task in unsound]
        parts += [tag("h2", "What is not sound"), _table(["task", "outcomes", "why"], rows, class_="stacked")]
    if environment.hints:
        parts += [tag("h2", "The lint's hints"), hints(environment.hints)]
    if unsound:
        parts += [tag("h2", "Proofs"), *(article(probed, environment, task) for task in unsound)]
    return parts + _sound(probed, environment)


def _head(probed: Probed, environment: EnvironmentReport) -> Markup:
    facts = {
        "tasks": f"{len(environment.tasks):,}",
        "runs": f"{sum(len(task.runs) for task in environment.tasks):,}",
        "CPU": f"{environment.cpu_s:,.1f} s",
        "time": f"{environment.wall_s:,.1f} s",
        "version": environment.version[:16],
        "verifier": environment.verifier_digest[:16],
        "probed": probed.at.strftime("%Y-%m-%d %H:%M %Z").strip(),
    }
    if probed.baseline:
        facts["baseline"] = _news(probed, environment)
    title = tag("h1" if len(probed.environments) == 1 else "h2", text(environment.environment, limit=NAME), id=anchor(environment))
    listed = [tag("div", tag("dt", name), tag("dd", text(value, limit=NAME))) for name, value in facts.items()]
    return tag("header", tag("p", "Probe of an environment", class_="kicker"), title, tag("dl", *listed, class_="facts"))


def _news(probed: Probed, environment: EnvironmentReport) -> str:
    grounds = [ground for task in environment.tasks for ground in probed.grounds(environment, task)]
    new = sum(not ground.known for ground in grounds)
    return f"{new} new, {len(grounds) - new} known"


def _bar(environment: EnvironmentReport) -> Markup:
    """Each task once, by the worst of its outcomes."""
    order = list(TONES)
    worst = [min((tone(outcome) for outcome in task.outcomes), key=order.index, default="untold") for task in environment.tasks]
    parts, at = [], 0.0
    for name in order:
        width = 100 * worst.count(name) / max(len(worst), 1)
        parts.append(tag("rect", x=f"{at:.3f}", y=0, width=f"{width:.3f}", height=1, class_=name))
        at += width
    said = ", ".join(f"{worst.count(name)} {meaning}" for name, meaning in TONES.items() if name in worst)
    return tag("svg", *parts, viewBox="0 0 100 1", preserveAspectRatio="none", class_="bar", role="img", aria_label=said)


def _counts(environment: EnvironmentReport) -> list[tuple[Outcome, int]]:
    counts = environment.counts()
    return [(outcome, counts[outcome]) for outcome in MEANINGS if outcome in counts]


def _scores(environment: EnvironmentReport) -> Markup:
    rows = [
        tag("tr", tag("td", badge(outcome)), tag("td", f"{count:,}", class_="number"), tag("td", MEANINGS[outcome])) for outcome, count in _counts(environment)
    ]
    return _table(["outcome", "#tasks", "what it means"], rows, class_="counts")


def _causes(causes: Sequence[Cause]) -> Markup:
    rows = [tag("tr", tag("td", badge(one.outcome)), *_many(one)) for one in causes]
    return _table(["outcome", "#tasks", "by"], rows, class_="counts")


def _many(cause: Cause) -> list[Markup]:
    return [tag("td", f"{cause.tasks:,}", class_="number"), tag("td", named(cause.probe))]


def _unsound_row(environment: EnvironmentReport, task: TaskReport) -> Markup:
    link = tag("a", text(task.task, limit=NAME), href=f"#{anchor(environment, task)}")
    why = next((one.claim for one in evidence_of(task)), "")
    return tag("tr", tag("td", link), tag("td", *badges(task)), tag("td", text(why, limit=NAME)))


def _sound(probed: Probed, environment: EnvironmentReport) -> list[Markup]:
    """A list of names; those with something to tell have an article too."""
    sound = [task for task in environment.tasks if Outcome.SOUND in task.outcomes]
    if not sound:
        return []
    telling = [article(probed, environment, task) for task in sound if task.hints or task.notes]
    names = tag("ul", *(tag("li", text(task.task, limit=NAME)) for task in sound))
    parts = [tag("h2", f"{counted(len(sound), 'task')} sound"), tag("details", tag("summary", "All names"), names, class_="names")]
    return [*parts, tag("details", tag("summary", f"{counted(len(telling), 'task')} with hints or notes"), *telling)] if telling else parts


def _foot(probed: Probed) -> Markup:
    made = tag("p", "Made by ", tag("code", text(probed.command)), ".") if probed.command else None
    return tag("footer", made, tag("p", "Sound means: sound as far as these probes went. What was not judged is not sound, and not accused."))


def _table(columns: list[str], rows: list[Markup], class_: str | None = None) -> Markup:
    """`#` before a column's name: it holds numbers."""
    heads = [tag("th", name.lstrip("#"), scope="col", class_="number" if name.startswith("#") else None) for name in columns]
    return tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows), class_=class_)
