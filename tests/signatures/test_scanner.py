"""What a scanner finds is what RE2 finds in each field alone, with hyperscan or without."""

from __future__ import annotations

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.check import Batch, Span, text_at
from inspector.signatures import Place, Scanner, Sought, compiled, prefilter
from inspector.signatures import scanner as scanning
from inspector.signatures.places import TRANSCRIPT
from inspector.signatures.scanner import SPANS
from inspector.signatures.transcript import addresses_of, field_at, transcript
from inspector.testing import odd_trajectories, trajectory

EVERYWHERE = frozenset(TRANSCRIPT)
PATTERNS = [
    "foo", "^foo", "foo$", "(?m)^bar$", r"\Abar", r"baz\z", r"\bfoo\b", r"\Bo", "(?i)foo", "(?i)sk", r"f\S+r", r"a\s+b", r"[^\s]oo", r"\d{2,5}", r"(?s)a.+b",
    "a.{0,20}b", "[[:upper:]]oo", r"\pL{3}", "(?i)ÄÖ", "é", "[^a]b", r"[]\s]o", "(?P<x>oo)b", "(?U)a+b", r"\x{1F600}", "x{3}", "(foo|bar)+ ", r"\w+=\d",
]  # fmt: skip
ALPHABET = [
    "foo",
    "bar",
    "baz",
    "o",
    "a",
    "b",
    " ",
    "\n",
    "\t",
    "\v",
    "é",
    "ÄÖ",
    "äö",
    "ſk",
    "sK",
    "\u212a",
    "12",
    "=",
    "x",
    "😀",
    "]",
    "\0",
    "\r",
    "S\u212a",
]
texts = st.lists(st.sampled_from(ALPHABET), max_size=8).map("".join)


def episode(said, done, seen):
    call = {"tool_call_id": "c", "function_name": "bash", "arguments": {"command": done, "more": {"text": said}}}
    step = {"message": said, "reasoning_content": seen, "tool_calls": [call], "observation": {"results": [{"source_call_id": "c", "content": seen}]}}
    return trajectory(steps=[{"step_id": 1, "source": "user", "message": done}, {"step_id": 2, "source": "agent", **step}])


def scanner(sources, *, fast, places=EVERYWHERE):
    made = Scanner(fast=fast)
    for source in sources:
        made.add(Sought((compiled(source),), (), places))
    return made


def spans(made, subject):
    batch = Batch([subject])
    return [[span for _, found in made.found(batch, number) for span in found] for number in range(len(PATTERNS))]


@pytest.fixture(scope="module", params=[pytest.param(True, marks=pytest.mark.skipif(not prefilter.available(), reason="no hyperscan here")), False])
def everywhere(request):
    return scanner(PATTERNS, fast=request.param)


@settings(max_examples=150, deadline=None)
@given(said=texts, done=texts, seen=texts)
def test_findings_are_those_of_each_field_alone(everywhere, said, done, seen):
    subject = episode(said, done, seen)
    for source, found in zip(PATTERNS, spans(everywhere, subject), strict=True):
        expected = []
        for field, text in zip(map(field_at, addresses_of(subject)), transcript(subject).texts, strict=True):
            data = text.encode("utf-8", "replace")
            for match in re2.compile(source.encode()).finditer(data):
                start, end = (len(data[:at].decode()) for at in match.span())
                expected.append((field.step, field.name, start, end, text[start:end]))
        assert [(span.step, span.field, span.start, span.end, span.quote) for span in found] == expected[:SPANS], source


@pytest.mark.parametrize("name", odd_trajectories())
def test_every_text_has_an_address(name):
    subject = odd_trajectories()[name]
    pairs = list(zip(map(field_at, addresses_of(subject)), transcript(subject).texts, strict=True))
    assert [text_at(subject, Span(step=field.step, field=field.name)) or "" for field, _ in pairs] == [text for _, text in pairs]


def test_only_the_wanted_places_are_read():
    subject = episode("foo", "bar", "foo")
    only = scanner(["foo"], fast=False, places=frozenset({Place.OBSERVATION}))
    assert [span.field for _, found in only.found(Batch([subject]), 0) for span in found] == ["observation.results[0].content"]


def test_what_compaction_copied_is_not_read_again():
    steps = [{"step_id": 1, "source": "agent", "message": "foo"}, {"step_id": 2, "source": "agent", "message": "foo", "is_copied_context": True}]
    found = list(scanner(["foo"], fast=None).found(Batch([trajectory(steps=steps)]), 0))
    assert [span.step for _, spans in found for span in spans] == [0]


def test_one_scan_serves_all_rules(monkeypatch):
    made, scans, plain = scanner(["foo", "bar"], fast=False), [], scanning._scanned
    monkeypatch.setattr(scanning, "_scanned", lambda *given: scans.append(1) or plain(*given))
    batch = Batch([episode("foo", "bar", "")])
    assert len(list(made.found(batch, 0))) == len(list(made.found(batch, 1))) == 1
    assert len(scans) == 1


def test_an_excuse_holds_on_its_own_lines_alone():
    made = Scanner()
    made.add(Sought((compiled("rm tests"),), (compiled("^ *#"),), frozenset({Place.ACTION})))
    found = [list(made.found(Batch([episode("", done, "")]), 0)) for done in ("# rm tests", "rm tests\n# rm nothing", "# nothing\nrm tests")]
    assert [len(one) for one in found] == [0, 1, 1]
