"""Static lint of a Harbor task folder: hints that a probe can prove, never a verdict."""

from inspector.environments.lint.hints import Hint, Rule
from inspector.environments.lint.linting import RULES, lint

__all__ = ["RULES", "Hint", "Rule", "lint"]
