"""Audits what waits: claim a block, read it once, run every fast check, judge, and close it in one transaction; groups once more, by late checks."""

from inspector.audit.auditor import Auditor, Pace
from inspector.audit.late import LateAuditor
from inspector.audit.plans import selected

__all__ = ["Auditor", "LateAuditor", "Pace", "selected"]
