"""What the probes submit, and what it means where it is paid."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.environments.protocol import Script, Submission, Text
from inspector.probe.words import Family, Outcome


@dataclass(frozen=True, slots=True)
class Attempt:
    """One submission of a probe."""

    probe: str  # as `exploit/always_equal`
    family: Family
    submission: Submission
    outcome: Outcome  # that holds where it is paid, or for a variation where it is not
    claim: str  # one sentence for that case
    root: str = ""  # attempts with the same root cause are one evidence; else the probe
    control: Submission | None = None  # the same without what should not be paid: it must not be paid either
    machine: bool = False  # acts on the machine, not on the task's own folder: told in a note, as no shared verifier withstands it
    noted: bool = False  # told in a note alone, as it is open whether the task allows it

    @property
    def cause(self) -> str:
        """What makes two attempts one evidence."""
        return f"{self.outcome}:{self.root or self.probe}"


def shown(submission: Submission | None, limit: int = 2000) -> str:
    """A submission as a proof prints it: its text, with the middle left out where it is long."""
    text = submission.text if isinstance(submission, Text) else submission.script if isinstance(submission, Script) else repr(submission)
    if len(text) <= limit:
        return text or "(nothing)"
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters …]\n{text[-half:]}"
