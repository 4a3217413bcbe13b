"""Commands that only run another one: `sudo -u x`, `env A=b`, `timeout 5`, `uv run`, …"""

from __future__ import annotations

import re
from collections.abc import Sequence

from inspector.actions.words import Word

_PREFIXES = {
    "sudo",
    "env",
    "timeout",
    "nohup",
    "time",
    "nice",
    "ionice",
    "command",
    "exec",
    "builtin",
    "xargs",
    "stdbuf",
    "setsid",
    "unbuffer",
    "uv",
    "poetry",
    "pipenv",
}
_RUNNERS = {"uv", "poetry", "pipenv"}  # `uv run pytest`
_TAKES_VALUE = {"-n", "-u", "-g", "-k", "-s", "-I", "-L", "-P", "-d", "-o", "-e"}
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


def strip(words: list[Word], env: list[tuple[str, str]]) -> None:
    """Removes `sudo -u x`, `env A=b`, `timeout 5`, `uv run`, … so that the first word is the program."""
    while len(words) > 1 and words[0].text.rpartition("/")[2] in _PREFIXES:
        name = words[0].text.rpartition("/")[2]
        rest = _options_dropped(words[1:], env)
        if name in _RUNNERS:
            if not rest or rest[0].text != "run":
                return
            rest = _options_dropped(rest[1:], env)
        if name in ("timeout",) and rest:
            rest = rest[1:]
        if not rest:
            return
        words[:] = rest


def _options_dropped(words: Sequence[Word], env: list[tuple[str, str]]) -> list[Word]:
    at = 0
    while at < len(words):
        text = words[at].text
        if text.startswith("-") and text != "-":
            at += 2 if text in _TAKES_VALUE else 1
        elif assigned := _ASSIGNED.fullmatch(text):
            env.append((assigned[1], assigned[2]))
            at += 1
        else:
            break
    return list(words[at:])
