"""What shell commands do to files, and the programs that they carry: `bash -c`, `python -c`, here-documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from inspector.actions import patches, program
from inspector.actions.shell import Command, Unparsable, commands
from inspector.actions.words import Action, Kind, Passage, Unread, Word, below

NESTED = 4  # shells inside shells
_SHELLS = {"bash", "sh", "zsh", "dash", "ash", "ksh"}
_READERS = {"cat", "head", "tail", "less", "more", "nl", "bat", "od", "xxd", "strings", "view", "open"}
_DELETERS = {"rm", "unlink", "shred", "rmdir"}
Found = Iterator[Action | Unread]


def of_shell(passage: Passage, depth: int = 0) -> Found:
    """Every command of a shell text with what it does."""
    if not passage.text.strip():
        return
    try:
        found, whole = commands(passage)
    except Unparsable as error:
        yield Action(Kind.COMMAND, passage.span(), text=passage.text, verbatim=passage.offset is not None)
        yield Unread(passage.span(), str(error))
        return
    if not whole:
        yield Unread(passage.span(), "a part of it is no shell that could be parsed")
    folder = ""
    for command in found:
        for action in _of_command(command, passage, depth):
            yield below(action, folder) if isinstance(action, Action) else action
        folder = _gone_to(command, folder)


def _gone_to(command: Command, folder: str) -> str:
    if command.name != "cd" or len(command.words) < 2:
        return folder
    target = command.words[1].text
    return target if target.startswith(("/", "~", "$")) or not folder else f"{folder.rstrip('/')}/{target}"


def _of_command(command: Command, passage: Passage, depth: int) -> Found:
    argv = tuple(word.text for word in command.words)
    span = passage.span(command.start, command.end)
    text = passage.text[command.start : command.end]
    yield Action(
        Kind.COMMAND, span, text=text, argv=argv, env=tuple(command.env), verbatim=passage.offset is not None, swallowed=command.swallowed, via=_via(command)
    )
    for target, appends in command.writes:
        yield Action(Kind.WRITE, span, path=target.text, text=_output(command), via="redirect", appends=appends)
    if not command.words:
        return
    if effect := _EFFECTS.get(command.name):
        yield from (Action(**{"span": span, "via": command.name, **fields}) for fields in effect(command))  # type: ignore[arg-type]
    elif command.name in _READERS:
        yield from (Action(Kind.READ, span, path=word.text, via=command.name) for word in _operands(command.words[1:]))
    if depth < NESTED:
        yield from _carried(command, passage, depth)


def _via(command: Command) -> str:
    return command.fed_by.name if command.fed_by else ""


def _operands(words: Sequence[Word]) -> list[Word]:
    """The words that are no options."""
    texts = [word.text for word in words]
    after = texts.index("--") + 1 if "--" in texts else len(words)
    return [word for at, word in enumerate(words) if at >= after or not word.text.startswith("-")]


def _output(command: Command) -> str:
    """What a command prints, as far as its words say."""
    if command.document is not None and command.name in ("cat", "tee", ""):
        return command.document.text
    if command.name == "echo":
        words = [word.text for word in command.words[1:]]
        joined = " ".join(word for word in words if word not in ("-e", "-n", "-en", "-ne"))
        return _unescaped(joined) if words[:1] and "e" in words[0] and words[0].startswith("-") else joined
    if command.name == "printf":
        return _unescaped(" ".join(word.text for word in command.words[1:]))
    return ""


def _unescaped(text: str) -> str:
    return text.replace("\\n", "\n").replace("\\t", "\t")


# --- effects on files ------------------------------------------------------------------------------------------------

Touched = Iterator[Mapping[str, object]]  # fields of an action


def _delete(command: Command) -> Touched:
    if command.fed_by and command.fed_by.name == "find" and len(_operands(command.words)) == 1:  # `find … | xargs rm`
        return ({"kind": Kind.DELETE, "path": path} for path in _sought(command.fed_by))
    return ({"kind": Kind.DELETE, "path": word.text} for word in _operands(command.words[1:]))


def _find(command: Command) -> Touched:
    """`find … -delete` and `find … -exec rm`."""
    texts = [word.text for word in command.words]
    runs = next((texts[at + 1].rpartition("/")[2] for at, text in enumerate(texts[:-1]) if text in ("-exec", "-execdir", "-ok")), "")
    if "-delete" in texts or runs in _DELETERS:
        yield from ({"kind": Kind.DELETE, "path": path} for path in _sought(command))
    elif runs in ("sed", "perl") and any(text.startswith("-i") or text == "-pi" for text in texts):
        yield from ({"kind": Kind.EDIT, "path": path, "text": next((text for text in texts if text[:2] in ("s/", "s|")), "")} for path in _sought(command))


def _sought(command: Command) -> list[str]:
    """What `find` looks for, as patterns of paths."""
    texts = [word.text for word in command.words[1:]]
    first = next((at for at, text in enumerate(texts) if text[:1] in ("-", "(", "!")), len(texts))
    names = [texts[at + 1] for at, text in enumerate(texts[:-1]) if text in ("-name", "-iname", "-path", "-wholename")]
    return [f"{root.rstrip('/')}/{name}" if name else root for root in (texts[:first] or ["."]) for name in (names or [""])]


def _move(command: Command) -> Touched:
    operands = _operands(command.words[1:])
    if len(operands) < 2:
        return
    sources, target = operands[:-1], operands[-1]
    for source in sources:
        if command.name == "mv":
            yield {"kind": Kind.DELETE, "path": source.text}
        inside = target.text.endswith("/") or len(sources) > 1
        yield {"kind": Kind.WRITE, "path": f"{target.text.rstrip('/')}/{source.text.rpartition('/')[2]}" if inside else target.text}


def _tee(command: Command) -> Touched:
    text = _output(command) or (_output(command.fed_by) if command.fed_by else "")
    appends = any(word.text in ("-a", "--append") for word in command.words)
    return ({"kind": Kind.WRITE, "path": word.text, "text": text, "appends": appends} for word in _operands(command.words[1:]))


def _touch(command: Command) -> Touched:
    return ({"kind": Kind.WRITE, "path": word.text, "appends": True} for word in _operands(command.words[1:]))


def _sed(command: Command) -> Touched:
    """`sed -i`, `perl -i`: the script, and the files that it is run over."""
    texts = [word.text for word in command.words[1:]]
    if not any(text.startswith("--in-place") or (text[:1] == "-" and text[:2] != "--" and "i" in text.split("=")[0].split()[0]) for text in texts):
        return
    operands = [word.text for word in _operands(command.words[1:])]
    given = [texts[at + 1] for at, text in enumerate(texts[:-1]) if text in ("-e", "-pe", "-ne", "-pie", "--expression", "-f")]
    scripts = given or operands[:1]
    for path in operands:
        if path not in scripts:
            yield {"kind": Kind.EDIT, "path": path, "text": "\n".join(scripts)}


def _git(command: Command) -> Touched:
    texts = [word.text for word in command.words[1:]]
    verb = next((text for text in texts if not text.startswith("-")), "")
    if verb == "rm":
        yield from ({"kind": Kind.DELETE, "path": text} for text in texts[texts.index(verb) + 1 :] if not text.startswith("-"))
    elif verb == "mv":
        yield from ({"kind": kind, "path": path} for kind, path in zip((Kind.DELETE, Kind.WRITE), texts[-2:], strict=False))
    elif verb in ("checkout", "restore") and "--" in texts:
        yield from ({"kind": Kind.WRITE, "path": text, "via": "git"} for text in texts[texts.index("--") + 1 :])


def _dd(command: Command) -> Touched:
    return ({"kind": Kind.WRITE, "path": word.text[3:]} for word in command.words if word.text.startswith("of="))


def _editor(command: Command) -> Touched:
    """`str_replace_editor str_replace PATH --old_str … --new_str …` and SWE-agent's `create PATH`."""
    texts = [word.text for word in command.words[1:]]
    options = dict(pairwise(texts))
    verb, path = (texts[0], texts[1]) if len(texts) > 1 else ("", "")
    if command.name == "create" and texts:
        yield {"kind": Kind.WRITE, "path": texts[0]}
    elif verb == "create":
        yield {"kind": Kind.WRITE, "path": path, "text": options.get("--file_text", "")}
    elif verb in ("str_replace", "insert"):
        yield {"kind": Kind.EDIT, "path": path, "text": options.get("--new_str", ""), "removed": options.get("--old_str", "")}
    elif verb == "view":
        yield {"kind": Kind.READ, "path": path}


_EFFECTS: dict[str, Callable[[Command], Touched]] = {
    **dict.fromkeys(_DELETERS, _delete),
    **dict.fromkeys(("mv", "cp", "install", "ln", "rsync"), _move),
    "tee": _tee,
    "touch": _touch,
    "truncate": _touch,
    **dict.fromkeys(("sed", "gsed", "perl", "ruby"), _sed),
    "git": _git,
    "dd": _dd,
    "find": _find,
    **dict.fromkeys(("str_replace_editor", "edit_anthropic", "str_replace_based_edit_tool", "create"), _editor),
}


# --- programs inside commands ----------------------------------------------------------------------------------------


def _carried(command: Command, passage: Passage, depth: int) -> Found:
    words = command.words
    script = _after(words, "-c")
    if command.name in _SHELLS:
        inner = _passage(script or command.document, passage)
        yield from of_shell(inner, depth + 1) if inner else ()
    elif command.name == "eval":
        yield from of_shell(passage.reading(" ".join(word.text for word in words[1:]), command.start, command.end), depth + 1)
    elif command.name.startswith("python") or command.name == "ipython":
        inner = _passage(script or (command.document if len(words) == 1 or words[1].text == "-" else None), passage)
        yield from program.of_python(inner, lambda shell: of_shell(shell, depth + 1)) if inner else ()
    elif command.name in ("patch", "apply_patch", "git") and command.document is not None:
        inner = _passage(command.document, passage)
        yield from patches.actions(inner) if inner else ()


def _after(words: Sequence[Word], option: str) -> Word | None:
    """The word behind an option, `-lc` and `-ec` too."""
    for word, value in pairwise(words[1:]):
        text = word.text
        if text == option or (text[:1] == "-" and text[:2] != "--" and text.endswith(option[1:]) and len(text.split()) == 1):
            return value
    return None


def _passage(word: Word | None, passage: Passage) -> Passage | None:
    if word is None:
        return None
    return passage.piece(*word.verbatim) if word.verbatim else passage.reading(word.text, word.start, word.end)
