"""A pack is read whole or refused, and every fault says where it is."""

from __future__ import annotations

import json

import pytest

from inspector import catalog
from inspector.signatures import BadPack, BadPattern, Rulebook, compiled, read_pack
from inspector.signatures.packs import PACK_BYTES
from inspector.testing import assert_conforms

RULE = {
    "id": "history_cleared",
    "version": 1,
    "title": "The agent cleared the shell's history.",
    "where": ["action"],
    "patterns": ["history +-c"],
    "tier": "action",
    "cause": "policy_exploit",
    "flagged": [{"name": "it clears the history", "command": "history -c"}],
    "clean": [{"name": "it lists the history", "command": "history"}],
}


def pack(*rules, **fields):
    return json.dumps({"pack": "acme", "version": 1, "rules": list(rules), **fields}).encode()


def complaint(data):
    with pytest.raises(BadPack) as refused:
        read_pack(data, "acme.yaml")
    return str(refused.value)


def test_a_rule_becomes_a_check_that_conforms():
    book = Rulebook()
    (check,) = book.take(read_pack(pack(RULE), "acme.yaml"))
    assert book.faults() == []
    assert_conforms(check)
    assert check.qualified("acme").name == "acme/history_cleared"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"severity": 3}, "unknown field `severity`"),
        ({"score": 8}, "`$.score`, found 8"),
        ({"where": ["cmd"]}, "`$.where[0]`, found 'cmd'"),
        ({"tier": "proof"}, "`$.tier`, found 'proof'"),
        ({"title": "No sentence"}, "no sentence"),
        ({"patterns": ["ok", "a(?!b)"]}, "$.patterns[1]: 'a(?!b)': RE2 has no look-around"),
        ({"unless": ["(a)\\1"]}, "$.unless[0]"),
        ({"clean": [{"name": "shows nothing at all"}]}, "shows nothing"),
        ({"clean": []}, "`$.clean`"),
    ],
)
def test_a_fault_names_file_rule_path_and_value(change, told):
    said = complaint(pack(RULE | change))
    assert said.startswith("acme.yaml: rule 'history_cleared': ")
    assert told in said


def test_every_fault_is_listed():
    assert len(complaint(pack(RULE | {"score": 8}, RULE | {"id": "other", "tier": "x"}, {"version": 1})).splitlines()) == 3


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"pack: [", "acme.yaml: "),
        (b"- 1", "Expected `object`"),
        (b"pack: a\npack: b\nversion: 1\nrules: []", "comes twice"),
        (b"a: &x [1]\nb: [*x, *x]", "aliases are not read"),
        (b"!!python/object/apply:os.system [id]", "could not determine a constructor"),
        (b"[" * 100_000, "acme.yaml: "),
        (b"#" * (PACK_BYTES + 1), "more than"),
        (b"pack: \xff", "acme.yaml: "),
        (pack(RULE, RULE), "more than one rule has this id"),
        (pack(RULE, owner="x"), "unknown field `owner`"),
    ],
)
def test_a_file_that_is_no_pack_is_refused(data, told):
    assert told in complaint(data)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("a(?=b)", "look-around"),
        ("(?<!a)b", "look-around"),
        (r"(a)\1", "back-references"),
        ("(?>a)", "atomic"),
        (r"a\Z", r"\z"),
        ("a{1,2000}", "repetition size"),
        ("x*", "matches the empty text"),
        (r"\b", "matches the empty text"),
        ("a|", "matches the empty text"),
        ("a" * 5000, "at most"),
    ],
)
def test_a_pattern_is_refused_with_its_rewrite(source, told):
    with pytest.raises(BadPattern) as refused:
        compiled(source)
    assert told in str(refused.value)


@pytest.mark.parametrize("change", [{"clean": RULE["flagged"]}, {"flagged": RULE["clean"]}])
def test_a_rule_whose_examples_are_misjudged_is_left_out(change):
    book = Rulebook()
    book.take(read_pack(pack(RULE | change), "acme.yaml"))
    (fault,) = book.faults()
    assert fault.reason.startswith("acme.yaml: rule 'history_cleared': the ")


def test_packs_come_by_the_door_of_checks(tmp_path, monkeypatch):
    from importlib.metadata import EntryPoint

    folder = tmp_path / "acme_rules"
    (folder / "packs").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "packs" / "shell.yaml").write_bytes(pack(RULE, RULE | {"id": "wrong", "clean": RULE["flagged"]}))
    (folder / "packs" / "torn.yaml").write_bytes(b"pack: [")
    monkeypatch.syspath_prepend(str(tmp_path))
    read = catalog.read([EntryPoint("acme", "acme_rules", catalog.GROUP)])
    assert list(read.checks) == ["acme/history_cleared"]
    assert [left.name for left in read.broken] == ["acme_rules/packs/torn.yaml", "wrong"]
