"""What a Python program does to files, and the shell lines that it runs; read by `ast`, never run.

Paths and texts are followed through constants, f-strings, `+`, `Path(…) / "x"` and names that were given one value.
"""

from __future__ import annotations

import ast
import shlex
import textwrap
import warnings
from collections.abc import Callable, Iterator

from inspector.actions import allowance
from inspector.actions.words import Action, Kind, Passage, Unread

PROGRAM_CHARS = 1 << 16
NODES = 20_000
DEPTH = 20
Found = Iterator[Action | Unread]
_DELETING = {"os.remove", "os.unlink", "os.rmdir", "os.removedirs", "shutil.rmtree"}
_MOVING = {"os.rename", "os.replace", "shutil.move"}
_COPYING = {"shutil.copy", "shutil.copy2", "shutil.copyfile", "os.symlink", "os.link"}
_RUNNING = {"os.system", "os.popen"} | {f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen", "getoutput")}


def parsed(text: str) -> ast.Module | None:
    """The program, or None where it is too long, too deep or no Python."""
    if len(text) > PROGRAM_CHARS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the program's own escapes and comparisons
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def fragment(text: str) -> ast.Module | None:
    """A piece of a program, as edits hold it: indented, or with its last block still open. None where it is no Python even so."""
    plain = textwrap.dedent(text.strip("\n"))
    last = plain.rstrip().rpartition("\n")[2]
    closed = f"{plain.rstrip()}\n{' ' * (len(last) - len(last.lstrip()) + 1)}pass" if last.endswith(":") else None
    without_last = plain.rstrip().rpartition("\n")[0]
    indented = f"if True:\n{textwrap.indent(text, ' ')}"
    return next((tree for attempt in (plain, closed, indented, without_last) if attempt and (tree := parsed(attempt)) is not None), None)


def of_python(passage: Passage, shell: Callable[[Passage], Found]) -> Found:
    """The program itself, then what it does; `shell` reads the lines that it gives to a shell."""
    yield Action(Kind.CODE, passage.span(), text=passage.text, verbatim=passage.offset is not None)
    allowed = allowance.current()
    allowed.program_chars -= len(passage.text)
    if allowed.program_chars < 0:
        yield Unread(passage.span(), f"more than {allowance.PROGRAM_CHARS} characters of programs in one trajectory: the rest was not parsed")
        return
    lines = _Lines(passage.text)
    tree = parsed(lines.without_magic())
    if tree is None:
        yield Unread(passage.span(), "it is no Python that could be parsed")
        return
    for line in lines.shell:
        yield from shell(passage.piece(*line))
    yield from _Reader(tree, passage, lines, shell).read()


class _Lines:
    """A program's lines; those of a notebook that begin with `!` or `%` are no Python."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines(keepends=True)
        self.starts = [0]
        self.shell: list[tuple[int, int]] = []
        for line in self._lines:
            at = self.starts[-1]
            if line.lstrip()[:1] == "!":
                self.shell.append((at + line.index("!") + 1, at + len(line.rstrip())))
            self.starts.append(at + len(line))

    def without_magic(self) -> str:
        return "".join("pass\n" if line.lstrip()[:1] in ("!", "%") and line[:1] in ("!", "%") else line for line in self._lines)


class _Reader:
    def __init__(self, tree: ast.Module, passage: Passage, lines: _Lines, shell: Callable[[Passage], Found]) -> None:
        self._tree, self._passage, self._lines, self._shell = tree, passage, lines, shell
        self._values: dict[str, ast.expr] = {}
        self._names: dict[int, list[str]] = {}  # an `open(…)` -> the names that `with` gives it
        self._writes: dict[str | int, list[ast.Call]] = {}  # a name, or the `open(…)` itself -> what is written to it

    def read(self) -> Found:
        for number, node in enumerate(ast.walk(self._tree)):
            if number > NODES:
                yield Unread(self._passage.span(), f"more than {NODES} nodes: the rest was not read")
                return
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self._values.setdefault(node.targets[0].id, node.value)
        calls = [node for node in ast.walk(self._tree) if isinstance(node, ast.Call)]
        self._index(calls)
        for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
            yield from self._call(call)

    def _index(self, calls: list[ast.Call]) -> None:
        """Which names files were opened under, and what is written to each."""
        for node in ast.walk(self._tree):
            for opening in node.items if isinstance(node, ast.With) else ():
                if isinstance(opening.optional_vars, ast.Name):
                    self._names.setdefault(id(opening.context_expr), []).append(opening.optional_vars.id)
        for call in calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr in ("write", "writelines") and call.args:
                target = call.func.value
                self._writes.setdefault(target.id if isinstance(target, ast.Name) else id(target), []).append(call)

    def _call(self, call: ast.Call) -> Found:
        name = dotted(call.func)
        if name in ("open", "io.open", "codecs.open") and call.args:
            yield from self._open(call, self.text(call.args[0]), 1)
        elif name in _DELETING and call.args:
            yield self._action(Kind.DELETE, call, self.text(call.args[0]))
        elif name in _MOVING | _COPYING and len(call.args) > 1:
            if name in _MOVING:
                yield self._action(Kind.DELETE, call, self.text(call.args[0]))
            yield self._action(Kind.WRITE, call, self.text(call.args[1]))
        elif name in _RUNNING and call.args:
            if line := self._line(call.args[0]):
                yield from self._shell(self._passage.reading(line, *self._range(call)))
        elif isinstance(call.func, ast.Attribute):
            yield from self._method(call, call.func)

    def _method(self, call: ast.Call, method: ast.Attribute) -> Found:
        if method.attr in ("write_text", "write_bytes"):
            yield self._action(Kind.WRITE, call, self.text(method.value), self.text(call.args[0]) if call.args else "")
        elif method.attr in ("read_text", "read_bytes"):
            yield self._action(Kind.READ, call, self.text(method.value))
        elif method.attr == "unlink" and not call.args:
            yield self._action(Kind.DELETE, call, self.text(method.value))
        elif method.attr == "touch":
            yield self._action(Kind.WRITE, call, self.text(method.value), appends=True)
        elif method.attr == "open" and isinstance(method.value, ast.Call):
            yield from self._open(call, self.text(method.value), 0)

    def _open(self, call: ast.Call, path: str, at: int) -> Found:
        given = call.args[at] if len(call.args) > at else next((word.value for word in call.keywords if word.arg == "mode"), None)
        mode = self.text(given) if given is not None else "r"
        if set("wax+") & set(mode):
            yield self._action(Kind.WRITE, call, path, self._written(call), appends="a" in mode or "+" in mode)
        else:
            yield self._action(Kind.READ, call, path)

    def _written(self, opened: ast.Call) -> str:
        """The constant texts that are written to what was opened here."""
        keys: list[str | int] = [id(opened), *self._names.get(id(opened), [])]
        return "".join(self.text(call.args[0]) for key in keys for call in self._writes.get(key, []))[:PROGRAM_CHARS]

    def _line(self, node: ast.expr) -> str:
        if isinstance(node, (ast.List, ast.Tuple)):
            return shlex.join(self.text(word) for word in node.elts)
        return self.text(node)

    def text(self, node: ast.expr, depth: int = 0) -> str:
        """The text of an expression as far as it is written out; what is not known is left away."""
        if depth > DEPTH:
            return ""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else ""
        if isinstance(node, ast.Name):
            return self.text(self._values[node.id], depth + 1) if node.id in self._values else ""
        if isinstance(node, ast.JoinedStr):
            return "".join(self.text(part, depth + 1) for part in node.values)
        if isinstance(node, ast.FormattedValue):
            return self.text(node.value, depth + 1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Div)):
            return ("/" if isinstance(node.op, ast.Div) else "").join((self.text(node.left, depth + 1), self.text(node.right, depth + 1)))
        if isinstance(node, ast.Call):
            joins = dotted(node.func) in ("os.path.join", "Path", "pathlib.Path", "PurePath")
            return "/".join(self.text(part, depth + 1) for part in node.args) if joins else ""
        return ""

    def _action(self, kind: Kind, call: ast.Call, path: str, text: str = "", *, appends: bool = False) -> Action:
        return Action(kind, self._passage.span(*self._range(call)), path=path, text=text, via="python", appends=appends)

    def _range(self, node: ast.expr) -> tuple[int, int]:
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)

    def _offset(self, line: int, column: int) -> int:
        """Characters before a place; ast counts the bytes of a line."""
        start = self._lines.starts[line - 1]
        text = self._passage.text[start : self._lines.starts[line] if line < len(self._lines.starts) else None]
        return start + (column if text.isascii() else len(text.encode("utf-8", "replace")[:column].decode("utf-8", "replace")))


def dotted(node: ast.expr) -> str:
    """`a.b.c` of names and attributes; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join(reversed([*parts, node.id])) if isinstance(node, ast.Name) else ""
