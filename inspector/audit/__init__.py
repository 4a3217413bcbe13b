"""Audits what waits: claim a block, read it once, run every fast check, judge, and close it in one transaction."""

from inspector.audit.auditor import Auditor, Pace
from inspector.audit.plans import selected

__all__ = ["Auditor", "Pace", "selected"]
