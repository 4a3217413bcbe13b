"""What is submitted of a state besides exploits: empty files, wrong contents in the right form, right ones taken back, and harmless changes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from inspector.environments.protocol import Script, TaskUnderTest
from inspector.probe import variations
from inspector.probe.attempts import Attempt
from inspector.probe.nothing import JUNK
from inspector.probe.states import Sight, changed, put
from inspector.probe.words import Family, Outcome

MAY_HOLD_MORE = re.compile(r"\b(append|add (it|them|a line|an entry)|at least|contains?|includ(e|es|ing)|log)\b", re.IGNORECASE)
SEEDS = (1, 2, 3)  # of wrong contents: a single one may by chance be right


def without_work(sight: Sight) -> Iterator[Attempt]:
    """The files that the reference leaves, empty and with junk in them."""
    paths = [each.path for each in sight.made if each.kind != "other"]
    if not paths:
        return
    empty = "".join(f"mkdir -p {_quoted(path.rpartition('/')[0])}\n: > {_quoted(path)}\n" for path in paths)
    yield Attempt("nothing/empty", Family.NOTHING, Script(empty), Outcome.TRIVIALLY_PASSABLE, "Empty files are paid.", root="nothing")
    junk = Script(put(dict.fromkeys(paths, JUNK)))
    yield Attempt("nothing/junk", Family.NOTHING, junk, Outcome.TRIVIALLY_PASSABLE, "Files of junk are paid.", root="nothing")


def _quoted(path: str) -> str:
    return "'" + (path or "/").replace("'", "'\\''") + "'"


def wrong(task: TaskUnderTest, sight: Sight) -> Iterator[tuple[Attempt, ...]]:
    """Wrong contents in the right form, each with its further versions, which must be paid too."""
    programs, data = sight.of("python", "shell"), sight.of("data")
    if sight.of("other") or not sight.whole:
        return
    if programs:
        claim = "Programs that do nothing, with wrong contents in all other files, are paid."
        yield tuple(_wrong(f"hollow_{seed}", changed(task, "all", sight.made, seed=seed), claim, "hollow") for seed in SEEDS)
    elif data:
        for how, what in (("decimals", "all decimal numbers"), ("numbers", "all numbers"), ("all", "all values")):
            claim = f"Files in which {what} are wrong are paid."
            yield tuple(_wrong(f"wrong_format_{how}_{seed}", changed(task, how, data, seed=seed), claim, "format") for seed in SEEDS)


def contradicted(task: TaskUnderTest, sight: Sight) -> Iterator[tuple[Attempt, ...]]:
    """The right contents taken back: wrong ones below them, or the opposite of what they say. Versions as of `wrong`."""
    data = sight.of("data")
    if not data or not sight.whole or len(data) < len(sight.made):
        return
    new = {each.path for each in data if not each.existed}
    if new == {each.path for each in data} == set(sight.twins.get("contradict", ())):
        claim = "Files that hold the right contents, and below them wrong ones in the same form, are paid."
        noted = MAY_HOLD_MORE.search(task.prompt) is not None
        yield tuple(_twin(f"contradicted_{seed}", changed(task, "contradict", data, seed=seed), claim, noted=noted) for seed in SEEDS)
    if sight.twins.get("invert"):
        claim = "Files that say the opposite of what is right, about the same things, are paid."
        yield (_twin("inverted", changed(task, "invert", data), claim, noted=True),)  # what words mean is not told from their form


def _twin(name: str, submission: Script, claim: str, *, noted: bool) -> Attempt:
    return Attempt(f"twin/{name}", Family.TWIN, submission, Outcome.WEAK_VERIFIER, claim, root="twin", noted=noted)


def _wrong(name: str, submission: Script, claim: str, root: str) -> Attempt:
    return Attempt(f"wrong/{name}", Family.WRONG, submission, Outcome.WEAK_VERIFIER, claim, root=root)


def varied(task: TaskUnderTest, sight: Sight) -> Iterator[Attempt]:
    """Harmless changes of what the reference leaves."""
    data, programs = sight.of("data"), sight.of("python", "shell")
    if data:
        yield _varied(task, "line_end", "with one end of line more or less at the end of its files", "ends", changed(task, "ends", data))
    if any(each.path.endswith(".json") for each in data):
        yield _varied(task, "key_order", "with the keys of its JSON in another order", "order", changed(task, "keys", data))
    if programs:
        yield _varied(task, "comments", "with a comment more in its programs", "source", changed(task, "comments", programs))


def _varied(task: TaskUnderTest, name: str, how: str, rule: str, submission: Script) -> Attempt:
    claim = f"The reference is refused {how}, which changes nothing of what it is."
    noted = variations.forbidden(task.prompt, rule)
    return Attempt(f"variation/{name}", Family.VARIATION, submission, Outcome.FALSE_REJECTING, claim, root=f"variation {rule}", noted=noted)
