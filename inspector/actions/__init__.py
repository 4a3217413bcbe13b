"""What an agent did, read once from the tool calls of any harness: commands, files written, edits, deletions and reads.

    for action in actions(trajectory).of(Kind.WRITE, Kind.EDIT, Kind.DELETE):
        if action.path.endswith("conftest.py"):
            yield Finding(message=f"it changed {action.path}", spans=(action.span,))

Shell is parsed by tree-sitter and Python by ast, both within bounds; what cannot be parsed stays text and is listed in
`unread`. A shell line that cannot change a file is parsed only for those who ask for commands or reads. Nothing is ever run, and no path is looked up.
"""

from inspector.actions.program import dotted, fragment
from inspector.actions.reading import CHANGES, Actions, actions
from inspector.actions.words import Action, Kind, Passage, Unread

__all__ = ["CHANGES", "Action", "Actions", "Kind", "Passage", "Unread", "actions", "dotted", "fragment"]
