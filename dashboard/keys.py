"""The keyboard: what every button of a page is called by, and what its components listen to themselves."""

from __future__ import annotations

from collections.abc import Mapping

# Streamlit takes c and r for itself; a browser takes most keys with Ctrl.
JUDGING: Mapping[str, str] = {"accept": "a", "quarantine": "q", "override": "v", "set reward": "g"}
TRIAGE: Mapping[str, str] = {**JUDGING, "open": "o", "next page": "m", "first page": "f", "find": "e", "all": "w", "environments": "n"}
EPISODE: Mapping[str, str] = {**JUDGING, "skip": "s", "triage": "t", "environment": "e", "set state": "x"}
ENVIRONMENTS: Mapping[str, str] = {"open version": "o", "next page": "m", "first page": "f", "look again": "u", "triage": "t"}
ENVIRONMENT: Mapping[str, str] = {
    "next page": "m",
    "first page": "f",
    "look again": "u",
    "environments": "n",
    "waiting": "w",
    "start probe": "p",
    "cancel probe": "h",
    "set state": "x",
}
MEANING: Mapping[str, str] = {
    "accept": "accept: it is fit for training",
    "quarantine": "quarantine: it is not to be used as it is",
    "override": "override its reward: opens the field for it, and closes it",
    "set reward": "set the reward that stands in the field",
    "open": "open the episode",
    "next page": "next page",
    "first page": "first page",
    "find": "find an episode by its id",
    "skip": "skip to the next that waits",
    "all": "show all that waits, without filters",
    "triage": "back to triage",
    "environments": "environment versions and what probes said of them",
    "environment": "what probes said of the task",
    "open version": "open the environment version",
    "look again": "ask anew how everything stands",
    "waiting": "triage of this environment version alone",
    "start probe": "start the probe that the open form describes",
    "cancel probe": "halt the probe before its next task; what it found stands",
    "set state": "set the state of the task or environment version, once confirmed",
}
IN_QUEUE: Mapping[str, str] = {"j": "next in the list", "k": "the one before"}
IN_TRANSCRIPT: Mapping[str, str] = {
    "j": "next step",
    "k": "the step before",
    "n": "next evidence, or next match of a search",
    "p": "the evidence or match before",
    "/": "search all steps",
}


def documented(buttons: Mapping[str, str], component: Mapping[str, str]) -> str:
    """All keys of a page as lines of text."""
    lines = [*component.items(), *((key, MEANING[name]) for name, key in buttons.items())]
    return "\n".join(f"{key.upper():<3} {meaning}" for key, meaning in lines)
