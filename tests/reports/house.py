"""Reports of probes that never ran, for all forms to render."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from inspector.environments.protocol import Trouble
from inspector.probe.words import EnvironmentReport, Evidence, Family, Hint, Outcome, Run, TaskReport
from inspector.reports.probed import Probed

AT = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HOSTILE = "<img src=x onerror=alert(1)></pre></script>]]>&amp;\x1b[31m\u202egnp.exe\u200b\x00\x07\ufffe\ud800=cmd|'/c calc'!A1 [x](javascript:alert(2)) {0} \"'"
UNSEEN = set("\x1b\u202e\u200b\x00\x07\ufffe\ud800")  # none of these may come through


def run(probe: str = "reference", family: Family = Family.REFERENCE, reward: float | None = 1.0, trouble: Trouble | None = None) -> Run:
    return Run(probe=probe, family=family, reward=reward, paid=reward == 1.0, trouble=trouble, cpu_s=0.25, wall_s=0.5)


def evidence(outcome: Outcome, probe: str = "nothing/empty", **about: Any) -> Evidence:
    told = {"claim": "An empty submission is paid.", "proof": "pass", "detail": "1 passed", "reproduce": "inspector probe tasks --task a"}
    return Evidence(outcome=outcome, probe=probe, **(told | about))


def task(name: str, *outcomes: Outcome, **about: Any) -> TaskReport:
    told = {"evidence": [evidence(outcome) for outcome in outcomes if outcome is not Outcome.SOUND], "runs": [run()], "cpu_s": 0.25, "wall_s": 0.5}
    return TaskReport(task=name, outcomes=outcomes, **(told | about))


def environment(*tasks: TaskReport, name: str = "tasks", **about: Any) -> EnvironmentReport:
    told = {"version": "a" * 64, "verifier_digest": "b" * 64, "cpu_s": 1.5, "wall_s": 3.0}
    return EnvironmentReport(environment=name, tasks=tasks, **(told | about))


def probed(*environments: EnvironmentReport, **about: Any) -> Probed:
    return Probed(environments, AT, **about)


def hostile(length: int = 0) -> Probed:
    """Every text that could be foreign is."""
    text = HOSTILE + "A" * length
    one = evidence(Outcome.EXPLOITABLE, text, claim=text, proof=text, detail=text, also=[text], reproduce=text)
    hint = Hint(rule=text, path=text, line=3, message=text, tested_by=text, confirmed=None)
    bad = task(text, Outcome.EXPLOITABLE, evidence=[one], notes=[text], hints=[hint], runs=[run(text)], reproduce=text)
    untold = task(f"{text}2", Outcome.NOT_ASSESSED, notes=[text])
    sound = task(f"{text}3", Outcome.SOUND, notes=[text])
    about = {"notes": [text], "hints": [hint], "name": text}
    return probed(environment(bad, untold, sound, **about), environment(name=f"{text}b"), command=text, files={(text, text): text})
