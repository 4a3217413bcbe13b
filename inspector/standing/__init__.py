"""How tasks and environment versions come to be watched, quarantined, tried again and released; no clock, no database."""

from inspector.standing.evidence import CLEAN, Evidence, Seen
from inspector.standing.machine import Move, Now, Why, conditions, decide
from inspector.standing.rules import DEFAULT, Rules

__all__ = ["CLEAN", "DEFAULT", "Evidence", "Move", "Now", "Rules", "Seen", "Why", "conditions", "decide"]
