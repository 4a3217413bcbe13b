"""The parts of the page that speak of one task: its outcomes, the proof of each, and what the lint saw."""

from __future__ import annotations

import re
from collections.abc import Sequence

from inspector.probe.words import EnvironmentReport, Hint, Outcome, Run, TaskReport
from inspector.reports.markup import Inside, Markup, tag, text
from inspector.reports.meanings import DEFECTS, GRAVE
from inspector.reports.probed import Ground, Probed, fingerprint, notes_of, outcomes_of
from inspector.reports.table import counted, verdict

NAME = 300  # characters
CLAIM = 2_000
TEXT = 20_000
BREAK = "<wbr>"  # where a line may break


def anchor(environment: EnvironmentReport, task: TaskReport | None = None) -> str:
    """The same in every report, so that a link to it lasts."""
    return f"t-{fingerprint(environment.environment, task.task)[:16]}" if task else f"e-{fingerprint(environment.environment)[:16]}"


def tone(outcome: Outcome) -> str:
    """How it is coloured; the word always stands beside."""
    return "grave" if outcome in GRAVE else "defect" if outcome in DEFECTS else "sound" if outcome is Outcome.SOUND else "untold"


def badge(outcome: Outcome, said: str | None = None) -> Markup:
    """One outcome."""
    return tag("span", (said or outcome.value).replace("_", " "), class_=f"badge {tone(outcome)}")


def badges(task: TaskReport) -> list[Markup]:
    """All outcomes of a task, worst first."""
    return [badge(outcome, _likely(task, outcome)) for outcome in outcomes_of(task)]


def named(probe: str) -> Markup:
    """A probe's name, which may go on in another line after a slash or an underscore."""
    return tag("code", Markup(re.sub("[/_]", rf"\g<0>{BREAK}", text(probe, limit=NAME))))


def _likely(task: TaskReport, outcome: Outcome) -> str | None:
    likely = task.probabilities.get(outcome)
    return None if likely is None else f"{outcome} · p {likely:.2f}"


def article(probed: Probed, environment: EnvironmentReport, task: TaskReport) -> Markup:
    """Everything about one task."""
    notes = [tag("li", text(note, limit=CLAIM, lines=True)) for note in notes_of(task)]
    title = tag("h3", tag("a", text(task.task, limit=NAME), href=f"#{anchor(environment, task)}"))
    return tag(
        "article",
        tag("header", title, tag("div", *badges(task))),
        *(_ground(ground) for ground in probed.grounds(environment, task)),
        _more("Notes", [tag("ul", *notes)] if notes else []),
        _more("The lint's hints", [hints(task.hints)] if task.hints else []),
        tag("details", tag("summary", _costs(task)), _runs(task.runs)) if task.runs else None,
        id=anchor(environment, task),
    )


def _ground(ground: Ground) -> Markup:
    evidence = ground.evidence
    by = tag("p", "by ", named(evidence.probe), *_also(evidence.also), class_="soft") if evidence.probe else None
    known = tag("span", "known", class_="badge untold") if ground.known else None
    return tag(
        "section",
        tag("h4", badge(evidence.outcome), known, " ", text(evidence.claim, limit=CLAIM)),
        by,
        *_block("What was submitted", evidence.proof),
        *_block("What came back", evidence.detail),
        *_block("Reproduce it", evidence.reproduce),
        class_="ground",
    )


def _also(also: Sequence[str]) -> list[Inside]:
    return [", with the same cause: ", tag("code", text(", ".join(also), limit=CLAIM))] if also else []


def _block(label: str, foreign: str) -> list[Markup]:
    """A label and the text under it; it can be scrolled by keyboard."""
    if not foreign.strip():
        return []
    shown = text(foreign.strip("\n"), limit=TEXT, lines=True)
    return [tag("p", label, class_="label"), tag("pre", shown, tabindex=0, role="region", aria_label=label)]


def _more(label: str, parts: Sequence[Markup]) -> Markup | None:
    return tag("section", tag("p", label, class_="label"), *parts) if parts else None


def hints(found: Sequence[Hint]) -> Markup:
    """Each with the verdict of the probe that tests it."""
    return tag("ul", *(_hint(hint) for hint in found))


def _hint(hint: Hint) -> Markup:
    place = f"{hint.path}:{hint.line}" if hint.line else hint.path
    return tag("li", tag("code", text(place, limit=NAME)), " ", text(f"{hint.message} [{hint.rule}]: ", limit=CLAIM), tag("strong", verdict(hint)))


def _costs(task: TaskReport) -> str:
    return f"{counted(len(task.runs), 'run')}, {task.cpu_s:,.1f} s of CPU"


def _runs(runs: Sequence[Run]) -> Markup:
    """A row for all runs of a probe that came to the same."""
    alike: dict[tuple[str, str, bool], list[float]] = {}
    for run in runs:
        alike.setdefault((run.probe, _reward(run), run.paid), []).append(run.cpu_s)
    columns = ("probe", None), ("runs", "number"), ("reward", "number"), ("", None), ("CPU", "number")
    head = tag("tr", *(tag("th", name, class_=kind) for name, kind in columns))
    return tag("table", tag("thead", head), tag("tbody", *(_run(*key, cpu_s) for key, cpu_s in alike.items())))


def _reward(run: Run) -> str:
    return run.trouble.value.replace("_", " ") if run.trouble else "none" if run.reward is None else f"{run.reward:g}"


def _run(probe: str, reward: str, paid: bool, cpu_s: Sequence[float]) -> Markup:
    counts = [tag("td", str(len(cpu_s)), class_="number"), tag("td", reward, class_="number"), tag("td", "paid" if paid else "", class_="paid")]
    return tag("tr", tag("td", named(probe)), *counts, tag("td", f"{sum(cpu_s):.2f} s", class_="number"))
