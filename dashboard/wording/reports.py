"""What a probe says of a task, with its proof, in labelled facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dashboard.shapes import Fact, Section
from dashboard.wording.outcomes import STATES, TONES, chips, gravity, word
from dashboard.wording.values import Json, amount, moment
from inspector.showable import showable

LONG = 6_000  # characters of a proof or of what was printed
SHORT = 2_000
MOST_RUNS = 300
HARD = {
    "dead": "never solved so far, which is no proof that it cannot be",
    "usable": "in between",
    "easy": "trivially easy for this policy",
    "open": "too few to tell",
    "undecided": "neither never nor always solved, as far as can be told",
}


def sections(line: Json, report: Json | None, state: str | None, kept_from_us: str = "") -> list[Section]:
    """Of a task: the outcomes with their evidence, the worst first, and what was run."""
    if report is None:
        return [_head(line, {}, state, kept_from_us)]
    told = [_evidence(one, report.get("reproduce")) for one in sorted(report.get("evidence") or (), key=lambda one: gravity(one["outcome"]))]
    return [_head(line, report, state), *told, *_notes(report), *_hints("Lint", report.get("hints") or (), folded=False), *_runs(report)]


def _head(line: Json, report: Json, state: str | None, why: str = "") -> Section:
    facts = [Fact("outcomes" if not at else "", chip.text, chip.tone) for at, chip in enumerate(chips(line["outcomes"]))]
    if state is not None:
        facts.append(Fact("state", state, STATES.get(state.partition(" ")[0], "")))
    for outcome, value in (report.get("probabilities") or {}).items():
        facts.append(Fact("probability", f"{word(outcome)} {value:.3g}"))
    if line.get("rollouts"):
        facts.append(Fact("rollouts", rollouts(line["rollouts"])))
    facts.append(Fact("probed", moment(line["probed_at"]) + _cost(report)))
    if why:
        facts.append(Fact("report", why, "none"))
    facts += _command(report.get("reproduce"))
    return Section(showable(line["task"]), facts)


def rollouts(found: Json) -> str:
    """What the newest rollouts of the project say of how hard a task is."""
    return f"{found['paid']:,} of {found['scored']:,} paid ({found['low']:.0%} to {found['high']:.0%}): {HARD.get(found['standing'], word(found['standing']))}"


def _cost(report: Json) -> str:
    runs = report.get("runs") or ()
    return f" · {len(runs)} runs, {report.get('cpu_s') or 0:.1f} s CPU" if runs else ""


def _evidence(one: Json, said: str | None) -> Section:
    facts = [Fact("claim", showable(one["claim"], limit=SHORT, lines=True), TONES.get(one["outcome"], "") if one["outcome"] != "sound" else "")]
    facts += _log("proof", one.get("proof"))
    facts += _log("printed", one.get("detail"))
    if also := one.get("also"):
        facts.append(Fact("also", ", ".join(showable(probe) for probe in also)))
    if one.get("reproduce") != said:
        facts += _command(one.get("reproduce"))
    return Section(f"{word(one['outcome'])} · {showable(one['probe'])}", facts)


def _log(label: str, text: str | None) -> Iterator[Fact]:
    if text and text.strip():
        yield Fact(label, showable(text, limit=LONG, lines=True), "log")


def _command(text: str | None) -> Iterator[Fact]:
    if text:
        yield Fact("reproduce", showable(text, limit=SHORT), "command")


def _notes(report: Json) -> Iterator[Section]:
    if notes := report.get("notes"):
        yield Section("Notes", [Fact("", showable(note, limit=SHORT, lines=True), "wide") for note in notes])


def _hints(title: str, hints: Iterable[Json], *, folded: bool) -> Iterator[Section]:
    facts = [_hint(hint) for hint in hints]
    if facts:
        yield Section(f"{title}: {len(facts):,} {'hint' if len(facts) == 1 else 'hints'}, no accusation by themselves", facts, folded)


def _hint(hint: Json) -> Fact:
    confirmed = {True: "confirmed by", False: "not confirmed by", None: "to be tested by"}[hint.get("confirmed")]
    tested = f"\n{confirmed} {showable(hint['tested_by'])}" if hint.get("tested_by") else ""
    return Fact(showable(hint["rule"]), f"{showable(hint['path'])}:{hint['line']}\n{showable(hint['message'], limit=SHORT)}{tested}")


def _runs(report: Json) -> Iterator[Section]:
    runs = report.get("runs") or ()
    facts = [Fact("", _run(run), "wide") for run in runs[:MOST_RUNS]]
    if len(runs) > MOST_RUNS:
        facts.append(Fact("", f"and {len(runs) - MOST_RUNS:,} more", "wide"))
    if facts:
        yield Section(f"Runs: {len(runs):,}", facts, folded=True)


def _run(run: Json) -> str:
    paid = "paid" if run["paid"] else "not paid"
    trouble = f" · {word(str(run['trouble']))}" if run.get("trouble") else ""
    return f"{showable(run['probe'])} — {amount(run['reward'])}, {paid}{trouble} · {run.get('cpu_s') or 0:.2f} s CPU"


def version(card: Json) -> list[Section]:
    """What a version is made of, as its worker read it, and what the lint saw in it."""
    facts = [Fact(label, *_digest(card[name])) for label, name in (("content", "content_version"), ("verifier", "verifier_digest"))]
    return [Section("Version", facts), *_hints("Lint of the version", card["hints"], folded=True)]


def _digest(value: object) -> tuple[str, str]:
    return (showable(str(value)), "") if value else ("not read by a worker yet", "none")
