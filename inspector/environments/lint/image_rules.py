"""Rules about the image that a task starts from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from inspector.environments.lint.hints import DOCKERFILE, Found, Rules, Subject, rule_of

RULES: Rules = []
rule = partial(rule_of, RULES)
PINNED = re.compile(r"@sha256:[0-9a-f]{64}$|:(?!latest$)[\w.-]+$")
PIP = re.compile(r"\bpip3?\s+install\b(?P<rest>[^&|;\n]*)")
PIPE = re.compile(r"\b(?:curl|wget)\b[^|;&\n]*\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b")
CHMOD = re.compile(r"\bchmod\s+(?:-\w+\s+)*(?:0?777|a\+rwx|ugo\+rwx)\b")
GIT = re.compile(r"\bgit\s+(?:init|commit|clone)\b")
LEAK = re.compile(r"(?:^|[\s\"'/])(?:tests?/(?:test_outputs|test\.sh)|solution/|solve\.sh|\.\./(?:tests|solution))")
REWARD = re.compile(r"/logs/verifier/reward\.(?:txt|json)")
TRUTH = re.compile(r"expected|answer|solution|truth|oracle|reference|gold|result|key", re.IGNORECASE)
SMALL = 24  # bytes: what is shorter is alike by chance


@rule("unpinned-image", proved_by="reference")
def unpinned_image(subject: Subject) -> Iterator[Found]:
    """The base image may be another one tomorrow."""
    for each in subject.dockerfile:
        image = each.text.split()[-1 if " as " not in each.text.lower() else 0] if each.word == "FROM" and each.text.split() else None
        if image and image != "scratch" and not PINNED.search(image):
            yield Found(DOCKERFILE, each.line, f"{image[:100]} has no tag that stays")


@rule("unpinned-python-dependency", proved_by="reference")
def unpinned_python_dependency(subject: Subject) -> Iterator[Found]:
    """A package in whatever version is the newest when the image is built."""
    for each in subject.dockerfile:
        for found in PIP.finditer(each.text) if each.word == "RUN" else ():
            names = [name for name in found["rest"].split() if re.match(r"[\"']?[A-Za-z][\w.-]*(?:\[[\w,]+\])?[\"']?$", name)]
            loose = [name for name in names if name.strip("\"'") not in ("pip", "setuptools", "wheel") and not name.endswith((".txt", ".toml"))]
            if loose:
                yield Found(DOCKERFILE, each.line, f"without a version: {', '.join(loose)[:100]}")


@rule("curl-pipe-sh", proved_by="reference")
def curl_pipe_sh(subject: Subject) -> Iterator[Found]:
    """The image runs what an address answers on that day."""
    for each in subject.dockerfile:
        if each.word == "RUN" and (found := PIPE.search(each.text)):
            yield Found(DOCKERFILE, each.line, found[0][:100])


@rule("add-remote-url", proved_by="reference")
def add_remote_url(subject: Subject) -> Iterator[Found]:
    """The image holds what an address answers on that day."""
    for each in subject.dockerfile:
        if each.word == "ADD" and "--checksum" not in each.text and re.search(r"https?://|git@", each.text):
            yield Found(DOCKERFILE, each.line, f"ADD {each.text[:100]}")


@rule("broad-chmod", proved_by="exploit/hidden_file")
def broad_chmod(subject: Subject) -> Iterator[Found]:
    """Everything may be changed by everyone."""
    for each in subject.dockerfile:
        if each.word == "RUN" and (found := CHMOD.search(each.text)):
            yield Found(DOCKERFILE, each.line, found[0])


@rule("entrypoint-set", proved_by="reference")
def entrypoint_set(subject: Subject) -> Iterator[Found]:
    """Harnesses replace the entry point; what it was to start may never run."""
    for each in subject.dockerfile:
        if each.word == "ENTRYPOINT":
            yield Found(DOCKERFILE, each.line, f"ENTRYPOINT {each.text[:100]}")


@rule("agent-image-test-leak", proved_by="exploit/hidden_file")
def agent_image_test_leak(subject: Subject) -> Iterator[Found]:
    """The image takes tests or solution along, for the agent to read."""
    for each in subject.dockerfile:
        if each.word in ("COPY", "ADD") and (found := LEAK.search(each.text)):
            yield Found(DOCKERFILE, each.line, f"{each.word} takes {found[0].strip()[:60]!r} into the agent's image")


@rule("answer-in-image", proved_by="exploit/hidden_file")
def answer_in_image(subject: Subject) -> Iterator[Found]:
    """A file of the image has the same content as one that only verifier or reference should know."""
    known = [file.path for folder in ("tests", "solution") for file in subject.tree.below(folder)]
    hidden = {subject.text(path).strip(): path for path in known if path.startswith("solution/") or TRUTH.search(path)}
    for file in subject.tree.below("environment"):
        text = subject.text(file.path).strip()
        if len(text) >= SMALL and text in hidden:
            yield Found(file.path, 1, f"is the same as {hidden[text]}")


@rule("git-history-exposed", proved_by="exploit/git_history")
def git_history_exposed(subject: Subject) -> Iterator[Found]:
    """The image has a repository whose history may hold the answer."""
    inside = [file.path for file in subject.tree.below("environment") if re.search(r"(?:^|/)(?:\.git|dotgit|_git)/HEAD$", file.path)]
    if inside:
        yield Found(inside[0], 1, "a repository with its history")
    for each in subject.dockerfile:
        if each.word == "RUN" and (found := GIT.search(each.text)) and "rm -rf .git" not in each.text:
            yield Found(DOCKERFILE, each.line, f"{found[0]} leaves a history")


@rule("reward-pre-created", proved_by="exploit/reward_forgery")
def reward_pre_created(subject: Subject) -> Iterator[Found]:
    """A reward file is there before anything was graded."""
    for each in subject.dockerfile:
        if REWARD.search(f"{each.text}{''.join(each.documents)}"):
            yield Found(DOCKERFILE, each.line, f"{each.word} makes the reward file")
