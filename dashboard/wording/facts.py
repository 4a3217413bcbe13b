"""What is known of one episode, in labelled facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dashboard.shapes import Fact, Section, Title
from dashboard.wording.values import Json, amount, decided, environment, moment, probability, size
from inspector.showable import showable

STDOUT = 6_000  # characters of a verifier's output that are shown


def verdict(detail: Json) -> Section:
    """What the checks say, what a trainer is to do, and why."""
    line, logged = detail["summary"], detail["decisions"]
    by = "by a person" if detail["by_person"] else f"by policy {showable(detail['policy'])}" if detail["policy"] else ""
    facts = [
        Fact("verdict", " · ".join(part for part in (line["verdict"], probability(line["probability"])) if part), line["verdict"]),
        Fact("action", decided(line) + (f", {by}" if by else "")),
    ]
    if line["cause"]:
        facts.append(Fact("cause", line["cause"]))
    reasons = logged[-1].get("reasons", ()) if logged else ()
    facts += [Fact("because" if not at else "", showable(reason)) for at, reason in enumerate(reasons)]
    return Section("Verdict", facts)


def title(line: Json, listed: Sequence[str]) -> Title:
    """What stands above a transcript; `listed` are the keys of the list that a person walks."""
    return Title(showable(line["task"]), _place(line, listed), line["verdict"])


def _place(line: Json, listed: Sequence[str]) -> str:
    step = f"step {line['step']}" if line["step"] is not None else ""
    at = f"{listed.index(line['key']) + 1} of {len(listed)} on this page of triage" if line["key"] in listed else ""
    run = showable(line["run"]) if line["run"] else ""
    return " · ".join(part for part in (environment(line), run, step, showable(line["id"]), f"reward {amount(line['reward'])}", at) if part)


def about(detail: Json, members: Sequence[Json] | None) -> list[Section]:
    """Header facts, and the verifier's own account."""
    line, envelope = detail["summary"], detail["envelope"]
    sections = [Section("Episode", list(_header(line, envelope, members)))]
    if verifier := list(_verifier(envelope.get("verifier") or {})):
        sections.append(Section("Verifier", verifier))
    return sections


def _header(line: Json, envelope: Json, members: Sequence[Json] | None) -> Iterator[Fact]:
    yield Fact("id", showable(line["id"]))
    yield Fact("environment", environment(line))
    yield Fact("task", showable(line["task"]))
    if line["run"]:
        run = envelope.get("run") or {}
        parts = [showable(line["run"]), f"step {line['step']}" if line["step"] is not None else "", showable(run.get("work") or "")]
        yield Fact("run", " · ".join(part for part in parts if part))
    if line["group"]:
        yield Fact("group", showable(line["group"]) + _rewards(line, members))
    yield Fact("reward", amount(line["reward"]), "" if line["reward"] is not None else "none")
    for name, component in (envelope.get("rewards") or {}).items():
        yield Fact("", f"{showable(name) or '(no name)'}: {_component(component)}")
    yield from _ending(envelope)
    yield Fact("received", f"{moment(line['received_at'])} · {size(line['bytes'])}")


def _rewards(line: Json, members: Sequence[Json] | None) -> str:
    if not members:
        return ""
    own = [f"[{amount(m['reward'])}]" if m["key"] == line["key"] else amount(m["reward"]) for m in members]
    return f" · rewards {', '.join(own)}"


def _component(component: Json | None) -> str:
    if component is None:
        return "not scored"
    weight = component.get("weight")
    return amount(component.get("score")) + (f" × {weight:g}" if weight is not None else "")


def _ending(envelope: Json) -> Iterator[Fact]:
    ending = envelope.get("termination") or {}
    parts = [showable(ending.get("reason") or "no reason given")] + [name.replace("_", " ") for name in ("truncated", "timed_out") if ending.get(name)]
    if ending:
        yield Fact("ended", ", ".join(parts))
    for error in envelope.get("errors") or ():
        where = f" ({error['boundary']})" if error.get("boundary") else ""
        yield Fact("error", f"{showable(error.get('type') or 'error')}{where}: {showable(error.get('message') or '', limit=1_000)}", "quarantine")


def _verifier(report: Json) -> Iterator[Fact]:
    if report.get("exit_code") is not None:
        yield Fact("exit code", str(report["exit_code"]))
    tests = {name: count for name, count in (report.get("tests") or {}).items() if count is not None}
    if tests:
        yield Fact("tests", ", ".join(f"{count} {showable(name)}" for name, count in tests.items()))
    if report.get("timed_out"):
        yield Fact("timed out", "yes", "quarantine")
    if report.get("duration_s") is not None:
        yield Fact("took", f"{report['duration_s']:g} s")
    if report.get("stdout"):
        yield Fact("stdout", showable(report["stdout"], limit=STDOUT, lines=True), "log")


def history(detail: Json) -> Section:
    """What was decided and what people said, newest first."""
    notes = {review["seq"]: review for review in detail["reviews"]}
    facts = [_decision(decision, notes.get(decision["seq"])) for decision in reversed(detail["decisions"])]
    return Section("Decisions", facts or [Fact("logged", "none yet", "none")])


def _decision(decision: Json, review: Json | None) -> Fact:
    action = decision["action"].replace("_", " ")
    if decision.get("reward_override") is not None:
        action += f" to {decision['reward_override']:g}"
    if decision.get("cause"):
        action += f" · {decision['cause']}"
    parts = [action, f"by {showable(decision.get('author', ''))}", "final" if decision.get("final") else "provisional", decision.get("mode", "observe")]
    if not decision.get("enforced", True):
        parts.append("not enforced")
    if decision.get("supersedes") is not None:
        parts.append(f"supersedes {decision['supersedes']}")
    when = f"\n{moment(decision['decided_at'])}" if decision.get("decided_at") else ""
    said = f"\n“{showable(review['note'], lines=True)}”" if review and review["note"] else ""
    return Fact(f"seq {decision['seq']}", " · ".join(parts) + when + said)
