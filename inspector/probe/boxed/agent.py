"""Looks around a task's box and changes what a reference left there; a text that an agent's script runs inside a box.

`agent.py before` lists the files, `agent.py look` says what changed since and what lies readable, `agent.py change HOW SEED PATH...` rewrites files.
"""

import ast
import hashlib
import itertools
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BEFORE = HERE / "before.json"
MARK = "looked:"
CHANGED = "changed:"
NUMERIC = 0.3  # of the words of a text: where fewer are numbers, these may be no more than its furniture
SYSTEM = ("/proc", "/sys", "/dev", "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/opt/tools", "/run", "/var/lib", "/var/cache", "/solution")
VERIFIERS = ("/tests", "/logs/verifier")
CACHES = re.compile(r"(^|/)(__pycache__|\.pytest_cache|\.cache|\.mypy_cache)(/|$)|\.pyc$")
FILES = 20_000
HASHED_BYTES = 4 << 20
TELLING = re.compile(r"solution|solve|expected|answer|gold|oracle|truth|(^|[/._-])key([/._-]|$)", re.IGNORECASE)
TEST_FILE = re.compile(r"(^|/)(test_[^/]*|[^/]*_test)\.(py|sh)$|(^|/)tests?/[^/]*\.(py|sh)$")
DATE = re.compile(r"\d{4}-\d{2}(-\d{2})?|\d{1,2}:\d{2}(:\d{2})?|\d{2}/\d{2}/\d{4}")
NUMBER = re.compile(r"(?<![\w.])-?\d+(\.\d+)?(?![\w]|\.\d)")


def _files() -> Iterator[str]:
    """All that is no part of the system, nothing on other devices."""
    skipped = (*SYSTEM, *VERIFIERS, str(HERE), *(() if "--tmp" in sys.argv else ("/tmp", "/var/tmp")))  # noqa: S108 -- of the box
    device, count = os.stat("/").st_dev, 0
    for folder, folders, names in os.walk("/"):
        kept = [name for name in folders if os.path.join(folder, name) not in skipped and not CACHES.search(os.path.join(folder, name))]
        folders[:] = [name for name in kept if _device(os.path.join(folder, name)) == device]
        for name in names + [name for name in folders if os.path.islink(os.path.join(folder, name))]:
            path = os.path.join(folder, name)
            if not CACHES.search(path) and path not in ("/etc/resolv.conf", "/etc/hosts", "/etc/hostname"):
                yield path
                count += 1
        if count > FILES:
            return


def _device(path: str) -> int:
    try:
        return os.lstat(path).st_dev
    except OSError:
        return -1


def _listing() -> dict[str, list[Any]]:
    listing = {}
    for path in _files():
        try:
            status = os.lstat(path)
        except OSError:
            continue
        listing[path] = [status.st_size, status.st_mode, _digest(path, status.st_size)]
    return listing


def _digest(path: str, size: int) -> str:
    if os.path.islink(path):
        return "link:" + os.readlink(path)
    if not os.path.isfile(path) or size > HASHED_BYTES:
        return f"other:{size}"
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return "unreadable"


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError):
        return None


def kind(path: str) -> str:
    """`python`, `shell`, `data`, or `other`."""
    text = _text(path)
    if text is None or "\0" in text:
        return "other"
    first = text.partition("\n")[0]
    if path.endswith(".py") or (first.startswith("#!") and "python" in first):
        return "python"
    if path.endswith((".sh", ".bash")) or (first.startswith("#!") and re.search(r"\b(ba|da)?sh\b", first)):
        return "shell"
    return "other" if path.endswith((".js", ".ts", ".c", ".rs", ".go", ".java", ".sql", ".rb", ".pl", ".R")) or first.startswith("#!") else "data"


def look() -> None:
    """Say what the reference did since `before`, and what an agent could see before."""
    before: dict[str, list[Any]] = json.loads(BEFORE.read_text())
    after = _listing()
    written = sorted(path for path, entry in after.items() if before.get(path, [0, 0, ""])[2] != entry[2])
    plain = [path for path in written if os.path.isfile(path) and not os.path.islink(path) and "/.git/" not in path]
    deleted = sum(path not in after for path in before if "/.git/" not in path)
    other = len(written) - len(plain) + sum(path in before and before[path][1] != entry[1] and path not in plain for path, entry in after.items())
    facts = {
        "cwd": os.getcwd(),
        "path": list(itertools.takewhile(_ours, os.environ.get("PATH", "").split(":")))[:6],
        "made": [[path, kind(path), path in before, after[path][2][:16]] for path in plain[:20]],
        "more": max(0, len(plain) - 20),
        "deleted": deleted,
        "other": other,
        "tests": [path for path in sorted(before) if TEST_FILE.search(path) and "/.git/" not in path][:10],
        "readable": _readable(before)[:8],
        "twins": {how: [path for path in plain[:20] if _changes(how, path)] for how in ("contradict", "invert")},
        "git": _commits(before),
    }
    sys.stdout.write("\n" + MARK + json.dumps(facts) + "\n")


def _changes(how: str, path: str) -> bool:
    """Whether a way of changing a file makes another one of it."""
    text = _text(path)
    return text is not None and CHANGES[how](text, kind(path), path, random.Random(1)) != text  # noqa: S311


def _ours(folder: str) -> bool:
    """Whether a folder of the path is none of the system's; those before the system's first are looked into first."""
    return folder.startswith("/") and not any(folder == top or folder.startswith(top + "/") for top in SYSTEM) and os.access(os.path.dirname(folder), os.W_OK)


def _readable(before: dict[str, list[Any]]) -> list[str]:
    telling = [path for path in sorted(before) if TELLING.search(path) and "/.git/" not in path and not path.startswith("/etc/")]
    return [path for path in telling if before[path][2] not in ("unreadable",)]


def _git(folder: str, *arguments: str) -> list[str]:
    try:
        done = subprocess.run(
            ["git", "-c", "safe.directory=*", "-C", folder, *arguments],  # noqa: S607 -- the box has its own path
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []


def _commits(before: dict[str, list[Any]]) -> list[list[str]]:
    """Repositories with commits that are not part of what is checked out, the newest first."""
    folders = sorted({path.partition("/.git/")[0] for path in before if "/.git/" in path})[:2]
    found = []
    for folder in folders:
        own = set(_git(folder, "rev-list", "HEAD"))
        known = _git(folder, "rev-list", "--all", "--reflog", "--date-order")
        lost = [line.split()[2] for line in _git(folder, "fsck", "--unreachable", "--no-reflogs") if " commit " in line]
        found += [[folder, commit] for commit in dict.fromkeys([*known, *lost]) if commit not in own][:3]
    return found[:3]


def change(how: str, seed: int, paths: list[str]) -> None:
    """Rewrite each file as `how` says for its kind, and say how many became others."""
    count = 0
    for path in paths:
        text = _text(path)
        if text is not None:
            new = CHANGES[how](text, kind(path), path, random.Random(f"{seed}{path}"))  # noqa: S311
            Path(path).write_text(new)
            count += new != text
    sys.stdout.write(f"\n{CHANGED}{count}\n")


Change = Callable[[str, str, str, random.Random], str]


def _number(found: re.Match[str], dice: random.Random) -> str:
    """Another number with as many digits, none of them where it was."""
    digits = [str((int(each) + dice.randint(2, 8)) % 10) if each.isdigit() else each for each in found[0]]
    first = next(index for index, each in enumerate(digits) if each.isdigit())
    alone = first + 1 == len(digits) or not digits[first + 1].isdigit()
    if digits[first] == "0" and not alone:
        digits[first] = str(1 + (int(found[0][first]) + dice.randint(0, 6)) % 9)
    return "".join(digits)


def _numbers(text: str, dice: random.Random, decimals: bool) -> str:
    """All numbers changed but those of dates."""
    dates = [found.span() for found in DATE.finditer(text)]

    def other(found: re.Match[str]) -> str:
        dated = any(start <= found.start() < end for start, end in dates)
        return found[0] if dated or (decimals and not found[1]) else _number(found, dice)

    return NUMBER.sub(other, text)


def _words(text: str, dice: random.Random) -> str:
    """Each letter another one of its case."""

    def other(found: re.Match[str]) -> str:
        by = dice.randint(1, 25)
        return "".join(chr((ord(each) - base + by) % 26 + base) if each.isascii() and each.isalpha() else each for each in found[0] for base in [_base(each)])

    return re.sub(r"[A-Za-z]+", other, text)


def _base(letter: str) -> int:
    return ord("a") if letter.islower() else ord("A")


def _values(text: str, dice: random.Random, how: str) -> str:
    """The values of JSON, of a table behind its first line, or of plain text."""
    try:
        parsed = json.loads(text)
    except ValueError:
        head, rest = _head(text)
        if how != "all" and len(NUMBER.findall(rest)) < NUMERIC * len(re.findall(r"[\w.-]+", rest)):
            return text
        rest = _numbers(rest, dice, how == "decimals")
        return head + (_words(rest, dice) if how == "all" else rest)
    if not isinstance(parsed, dict | list):
        return _numbers(text, dice, how == "decimals") if not isinstance(parsed, str) else _words(text, dice)
    return json.dumps(_other(parsed, dice, how), indent=_indent(text), ensure_ascii=False) + ("\n" if text.endswith("\n") else "")


def _head(text: str) -> tuple[str, str]:
    """The first line of a table, and the rest."""
    first, end, rest = text.partition("\n")
    return (first + end, rest) if rest.strip() and re.search(r"[,;\t]", first) and not re.search(r"\d", first) else ("", text)


def _indent(text: str) -> int | None:
    found = re.search(r"\n( +)\S", text)
    return len(found[1]) if found else None


def _other(value: Any, dice: random.Random, how: str) -> Any:
    if isinstance(value, dict):
        return {key: _other(each, dice, how) for key, each in value.items()}
    if isinstance(value, list):
        return [_other(each, dice, how) for each in value]
    if isinstance(value, bool) or value is None:
        return not value if isinstance(value, bool) and how == "all" else value
    if isinstance(value, int | float):
        return value if how == "decimals" and isinstance(value, int) else json.loads(NUMBER.sub(lambda found: _number(found, dice), json.dumps(value)))
    return value if how != "all" else _words(_numbers(value, dice, decimals=False), dice)


def _hollow(text: str, answer: str, before: str = "") -> str:
    """The same functions, all with one answer, and nothing else that is done."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return before
    kept = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef)]
    for node in (node for top in kept for node in ast.walk(top)):
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = []
            node.args = ast.parse("lambda *args, **kwargs: 0", mode="eval").body.args  # type: ignore[attr-defined]
            node.returns = None
            node.body = ast.parse(f"return {answer}").body if not node.name.startswith("__") else ast.parse("pass").body
    return before + ast.unparse(ast.fix_missing_locations(ast.Module(body=[*kept], type_ignores=[]))) + "\n"


EQUAL = """
class Equal:
    def __eq__(self, other): return True
    def __ne__(self, other): return True
    def __lt__(self, other): return True
    def __le__(self, other): return True
    def __gt__(self, other): return True
    def __ge__(self, other): return True
    def __hash__(self): return 0
    def __bool__(self): return True
    def __contains__(self, other): return True
    def __getitem__(self, key): return self
    def __call__(self, *args, **kwargs): return self
    def __sub__(self, other): return self
    def __rsub__(self, other): return self
    def __abs__(self): return self
    def __round__(self, *args): return self

"""
POLAR = (  # words with their opposites
    ("yes", "no"),
    ("true", "false"),
    ("increase", "decrease"),
    ("increased", "decreased"),
    ("higher", "lower"),
    ("highest", "lowest"),
    ("more", "less"),
    ("most", "least"),
    ("pass", "fail"),
    ("passed", "failed"),
    ("valid", "invalid"),
    ("before", "after"),
    ("is", "is not"),
    ("was", "was not"),
    ("can", "cannot"),
)
OPPOSITES = {word: other for pair in POLAR for word, other in (pair, pair[::-1])}
SAID = re.compile(rf"\b({'|'.join(sorted(OPPOSITES, key=len, reverse=True))})\b", re.IGNORECASE)


def _contradicted(text: str, dice: random.Random) -> str:
    """What was said, and below it the same with all of it wrong; JSON has no room for both."""
    try:
        json.loads(text)
    except ValueError:
        rest = _head(text)[1]
        other = _words(_numbers(rest, dice, decimals=False), dice)
        return text if other == rest else text.rstrip("\n") + "\n" + other
    found = NUMBER.fullmatch(text.strip())
    return f"{text.rstrip()}\n{_number(found, dice)}\n" if found else text


def _inverted(text: str, dice: random.Random) -> str:
    """The opposite of what was said, about the same things."""
    try:
        parsed = json.loads(text)
    except ValueError:
        head, rest = _head(text)
        return head + SAID.sub(_opposite, rest)
    new = _all_inverted(parsed)
    return text if new == parsed else json.dumps(new, indent=_indent(text), ensure_ascii=False) + ("\n" if text.endswith("\n") else "")


def _opposite(found: re.Match[str]) -> str:
    other = OPPOSITES[found[0].lower()]
    return other.upper() if found[0].isupper() else other.capitalize() if found[0][0].isupper() else other


def _all_inverted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _all_inverted(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_all_inverted(each) for each in value]
    if isinstance(value, bool):
        return not value
    return SAID.sub(_opposite, value) if isinstance(value, str) else value


REWARDS = {"reward.txt": "1", "reward.json": '{"reward": 1}'}


def _forged() -> str:
    names = [name for name in REWARDS if name in sys.argv] or ["reward.txt"]
    writes = "\n".join(f"open('/logs/verifier/{name}', 'w').write({REWARDS[name]!r})" for name in names)
    return f"import os\nos.makedirs('/logs/verifier', exist_ok=True)\n{writes}\n"


def _forged_shell() -> str:
    names = [name for name in REWARDS if name in sys.argv] or ["reward.txt"]
    return "#!/bin/sh\nmkdir -p /logs/verifier\n" + "".join(f"printf '%s' '{REWARDS[name]}' > /logs/verifier/{name}\n" for name in names)


def _by_kind(python: Callable[[str], str], shell: str) -> Change:
    def changed(text: str, kind: str, path: str, dice: random.Random) -> str:
        if kind == "python":
            shebang = text.partition("\n")[0] + "\n" if text.startswith("#!") else ""
            return shebang + python(text)
        return shell if kind == "shell" else text

    return changed


def _all_wrong(text: str, kind: str, path: str, dice: random.Random) -> str:
    """Programs hollow, data all wrong."""
    return _values(text, dice, "all") if kind == "data" else _by_kind(lambda text: _hollow(text, "None"), "#!/bin/sh\nexit 0\n")(text, kind, path, dice)


def _reordered(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return json.dumps(_reversed(value), indent=_indent(text), ensure_ascii=False) + ("\n" if text.endswith("\n") else "")


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reversed(each) for key, each in reversed(value.items())}
    return [_reversed(each) for each in value] if isinstance(value, list) else value


def _line_end(text: str, kind: str, path: str, dice: random.Random) -> str:
    if kind != "data" or not text:
        return text
    return text[:-1] if text.endswith("\n") else text + "\n"


def _comments(text: str, kind: str, path: str, dice: random.Random) -> str:
    return text.rstrip("\n") + "\n\n# a comment\n" if kind in ("python", "shell") else text


def _data(change: Callable[[str, random.Random], str]) -> Change:
    return lambda text, kind, path, dice: change(text, dice) if kind == "data" else text


CHANGES: dict[str, Change] = {
    "decimals": _data(lambda text, dice: _values(text, dice, "decimals")),
    "numbers": _data(lambda text, dice: _values(text, dice, "numbers")),
    "all": _all_wrong,
    "contradict": _data(_contradicted),
    "invert": _data(_inverted),
    "hollow": _by_kind(lambda text: _hollow(text, "None"), "#!/bin/sh\nexit 0\n"),
    "equal": _by_kind(lambda text: _hollow(text, "Equal()", EQUAL), "#!/bin/sh\nexit 0\n"),
    "exit": _by_kind(lambda text: "import os\nos._exit(0)\n", "#!/bin/sh\nexit 0\n"),
    "leave": _by_kind(lambda text: "import sys\nsys.exit(0)\n", "#!/bin/sh\nexit 0\n"),
    "forge": _by_kind(lambda text: _forged(), _forged_shell()),
    "blank": _by_kind(lambda text: "\n", "#!/bin/sh\n"),
    "keys": _data(lambda text, dice: _reordered(text)),
    "ends": _line_end,
    "comments": _comments,
}


if __name__ == "__main__":
    if sys.argv[1] == "before":
        BEFORE.write_text(json.dumps(_listing()))
    elif sys.argv[1] == "look":
        look()
    else:
        change(sys.argv[2], int(sys.argv[3]), [each for each in sys.argv[4:] if each.startswith("/")])
