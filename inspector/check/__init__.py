"""The contract for checks: one function, whose signature says what it inspects and what it needs.

The first argument is the subject, annotated with its kind; the next ones are needs, annotated with theirs; keyword-only
ones are typed parameters with defaults. The decorator carries version, tier, cause and examples; the docstring is what
reviewers read. A check that cannot judge raises `NotAssessed(need)` or `Inconclusive(why)`; what it found before stands.

| subject      | what the check yields            | how it takes `Declaration`, `Baselines`, `Payments`, `Probed` |
|--------------|----------------------------------|-----------------------------------------------------|
| `Trajectory` | findings                         | one                                                 |
| `Group`      | findings about the whole group   | one: a group is of one environment version          |
| `Batch`      | (trajectory, finding) pairs      | `Sequence[Declaration]`, aligned with the batch     |

A check of a `Batch` may also yield (trajectory, NotAssessed(need)) or (trajectory, Inconclusive(why)).
"""

from inspector.check.contract import Check, Findings, check
from inspector.check.examples import Example, envelope, example
from inspector.check.findings import Inconclusive, misfit, text_at
from inspector.check.subjects import FAST_NEEDS, LATE_NEEDS, SUBJECTS, Baselines, Batch, Group, History, Judge, Payments, Probed, Replayed, Sandbox, Twin
from inspector.errors import MisusedCheck, NotAssessed
from inspector.task import Declaration
from inspector.trajectory import Trajectory
from inspector.verdict import Cause, Finding, Span, Tier

__all__ = [
    "FAST_NEEDS",
    "LATE_NEEDS",
    "SUBJECTS",
    "Baselines",
    "Batch",
    "Cause",
    "Check",
    "Declaration",
    "Example",
    "Finding",
    "Findings",
    "Group",
    "History",
    "Inconclusive",
    "Judge",
    "MisusedCheck",
    "NotAssessed",
    "Payments",
    "Probed",
    "Replayed",
    "Sandbox",
    "Span",
    "Tier",
    "Trajectory",
    "Twin",
    "check",
    "envelope",
    "example",
    "misfit",
    "text_at",
]
