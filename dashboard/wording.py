"""Says in words what the API gives as values; every foreign text comes out showable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from dashboard.shapes import Fact, QueueRow, Section, ShownFinding, ShownSpan
from inspector.showable import showable

Json = Mapping[str, Any]
QUOTE = 160
STDOUT = 6_000
DONE_WELL = ("clean", "flagged")  # outcomes of a check that ran to its end


def amount(value: float | None) -> str:
    """A reward; None was not scored, which is not a score of 0."""
    return "not scored" if value is None else f"{value:g}"


def probability(value: float | None) -> str:
    """As a share of one."""
    return "" if value is None else f"p {value:.2f}"


def ago(then: str | datetime, now: datetime | None = None) -> str:
    """How long ago, in the largest unit that fits."""
    at = datetime.fromisoformat(then) if isinstance(then, str) else then
    seconds = max(0, int(((now or datetime.now(UTC)) - at).total_seconds()))
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return "just now"


def moment(then: str) -> str:
    """A time in UTC, to the second."""
    return f"{datetime.fromisoformat(then).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def size(count: int) -> str:
    """Bytes in a readable unit."""
    for unit, unit_bytes in (("MB", 1_000_000), ("kB", 1_000)):
        if count >= unit_bytes:
            return f"{count / unit_bytes:.1f} {unit}"
    return f"{count} B"


def counted(waiting: Mapping[str, int], most: int) -> str:
    """What waits, worst first; a count that ended early says so."""
    parts = [f"{number:,}{'+' if number >= most else ''} {verdict}" for verdict, number in waiting.items() if number]
    return " · ".join(parts) if parts else "nothing waits for a person"


def environment(line: Json) -> str:
    """team/name@version."""
    return f"{showable(line['environment'])}@{showable(line['version'])}"


# --- triage -------------------------------------------------------------------------------------------------------------


def queue_row(line: Json, filters: Mapping[str, str], now: datetime | None = None) -> QueueRow:
    """A line of the list."""
    step = "" if line["step"] is None else f" · step {line['step']}"
    source = (line.get("why_check"), line.get("why_tier"), line.get("why_cause"))
    return QueueRow(
        key=line["key"],
        address=f"/episode?{urlencode({'key': line['key'], **filters})}",
        verdict=line["verdict"],
        probability=probability(line["probability"]),
        why=showable(line["why"]) if line.get("why") else "no finding of its own: decided with its group",
        source=" · ".join(showable(part) for part in source if part),
        place=f"{environment(line)} / {showable(line['task'])}",
        run=" · ".join([showable(line["run"]) + step if line["run"] else "no run", showable(line["id"])]),
        reward=amount(line["reward"]),
        scored=line["reward"] is not None,
        action=decided(line),
        received=ago(line["received_at"], now),
    )


def decided(line: Json) -> str:
    """The action, with the reward that an override gives, and whether it may still change."""
    if line["action"] is None:
        return "pending"
    action = str(line["action"]).replace("_", " ")
    if line["action"] == "override_reward" and line["reward_override"] is not None:
        action += f" to {line['reward_override']:g}"
    return action if line["final"] else f"{action} (provisional)"


# --- one episode --------------------------------------------------------------------------------------------------------


def findings(found: Iterable[Json]) -> list[ShownFinding]:
    """As the transcript lists and marks them."""
    return [
        ShownFinding(
            message=showable(finding["message"]),
            tier=finding.get("tier", "evidence"),
            cause=str(finding.get("cause", "anomaly")),
            check=f"{showable(finding.get('check', ''))}@{finding.get('version', 0)}",
            score=f"score {finding.get('score', 1.0):.2f}" + (f", p = {finding['p_value']:.3g}" if finding.get("p_value") is not None else ""),
            spans=[_span(span) for span in finding.get("spans", ())],
        )
        for finding in found
    ]


def _span(span: Json) -> ShownSpan:
    start, end = span.get("start", 0), span.get("end", 0)
    label = showable(span["field"]) + (f" [{start}:{end}]" if end > start else "")
    return ShownSpan(span["step"], span["field"], start, end, label, showable(span.get("quote", ""), limit=QUOTE))


def verdict(detail: Json) -> Section:
    """What the checks say, what a trainer is to do, and why."""
    line, logged = detail["summary"], detail["decisions"]
    by = "by a person" if detail["by_person"] else f"by policy {showable(detail['policy'])}" if detail["policy"] else ""
    facts = [
        Fact("verdict", " ".join(part for part in (line["verdict"], probability(line["probability"])) if part), line["verdict"]),
        Fact("action", decided(line) + (f", {by}" if by else "")),
    ]
    if line["cause"]:
        facts.append(Fact("cause", line["cause"]))
    reasons = logged[-1].get("reasons", ()) if logged else ()
    facts += [Fact("because" if not at else "", showable(reason)) for at, reason in enumerate(reasons)]
    return Section("Verdict", facts)


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


def coverage(covered: Mapping[str, Json]) -> Section:
    """What ran, what could not, and why; a clean verdict is clean only as far as this goes."""
    by: dict[str, list[tuple[str, Json]]] = {}
    for check, told in covered.items():
        by.setdefault(told["outcome"], []).append((check, told))
    facts = []
    for outcome in ("flagged", "error", "pending", "inconclusive", "not_assessed", "clean"):
        facts += [_covered(outcome, check, told) for check, told in by.get(outcome, ())]
    ran = sum(len(by.get(outcome, ())) for outcome in DONE_WELL)
    return Section(f"Coverage: {ran} of {len(covered)} checks ran to their end", facts, folded=True)


def _covered(outcome: str, check: str, told: Json) -> Fact:
    note = f" — {showable(told['note'], limit=2_000)}" if told.get("note") else ""
    return Fact(outcome.replace("_", " "), f"{showable(check)}@{told['version']}{note}", {"flagged": "flag", "error": "quarantine"}.get(outcome, ""))


class Reach(NamedTuple):
    """What training runs report of this trajectory."""

    used: Sequence[Json]  # {step, weight, reward, feed} of updates that were trained on it
    head: int | None  # how far the newest report of its run had read the feed


def reach(line: Json, told: Reach) -> list[Fact]:
    """Whether the decision has reached a trainer, as far as anyone can know."""
    facts = []
    seq = line["seq"]
    if seq is None:
        facts.append(Fact("feed", "kept: answered when asked, never logged" if line["action"] == "keep" else "not logged"))
    else:
        facts.append(Fact("feed", f"logged as seq {seq}; any follower past {seq} has it"))
        if told.head is not None:
            facts.append(Fact("trainer", f"has read up to {told.head}: {'it has it' if told.head >= seq else 'it has not seen it yet'}"))
    facts += [_used(seq, update) for update in told.used]
    return facts


def _used(seq: int | None, update: Json) -> Fact:
    read = (update.get("feed") or {}).get("seq")
    late = seq is not None and read is not None and read < seq
    known = "" if read is None else f", having read the feed to {read}" + (": before this decision" if late else "")
    reward = "" if update.get("reward") is None else f" at reward {update['reward']:g}"
    return Fact(
        f"step {update['step']}", f"was trained on it with weight {update['weight']:g}{reward}{known}", "quarantine" if late and update["weight"] else ""
    )


def history(detail: Json) -> Section:
    """What was decided and what people said, newest first."""
    notes = {review["seq"]: review for review in detail["reviews"]}
    facts = [_decision(decision, notes.get(decision["seq"])) for decision in reversed(detail["decisions"])]
    return Section("Decisions", facts)


def _decision(decision: Json, review: Json | None) -> Fact:
    action = decision["action"].replace("_", " ")
    if decision.get("reward_override") is not None:
        action += f" to {decision['reward_override']:g}"
    parts = [action, f"by {showable(decision.get('author', ''))}", "final" if decision.get("final") else "provisional", decision.get("mode", "observe")]
    if not decision.get("enforced", True):
        parts.append("not enforced")
    if decision.get("supersedes") is not None:
        parts.append(f"supersedes {decision['supersedes']}")
    if decision.get("decided_at"):
        parts.append(moment(decision["decided_at"]))
    said = f"\n“{showable(review['note'], lines=True)}”" if review and review["note"] else ""
    return Fact(f"seq {decision['seq']}", " · ".join(parts) + said)


def overlaid(whole: Json, own: Json) -> dict[str, Any]:
    """What is declared of the reward: a task's own values over those of its environment version."""
    return {**whole, **{name: value for name, value in own.items() if value is not None}}


def reward_range(reward: Json | None) -> str:
    """What an override may give, as it is declared."""
    if reward is None:
        return "the declared range is checked when it is set"
    low, high, penalty = reward.get("min"), reward.get("max"), reward.get("penalty_min")
    if low is None and high is None and penalty is None:
        return "no range is declared"
    text = f"declared {'…' if low is None else f'{low:g}'} to {'…' if high is None else f'{high:g}'}"
    return text if penalty is None else f"{text}, down to {penalty:g} as a penalty"


def standing(told: Json) -> str:
    """The state of an environment version or task."""
    weight = told.get("sampling_weight")
    return str(told["state"]) + (f" at sampling weight {weight:g}" if weight is not None else "")


def shown(text: str) -> str:
    """A foreign name or text on one line."""
    return showable(text)


def failure(reason: str, path: str | None) -> str:
    """What the service refused, and at which field."""
    return showable(f"{path}: {reason}" if path else reason, limit=1_000)


def part(name: str) -> str:
    """A foreign name as one segment of a path."""
    return quote(name, safe="").replace(".", "%2E") if name in (".", "..") else quote(name, safe="")
