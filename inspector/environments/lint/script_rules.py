"""Rules about the shell scripts of verifier and reference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from inspector.environments.lint.hints import SOLVE, TEST, Found, Rules, Subject, matches, rule_of

RULES: Rules = []
rule = partial(rule_of, RULES)
REWARD = re.compile(r"reward\.(?:txt|json)")
PAID = re.compile(
    r"""(?:echo|printf)\s+(?:-n\s+)?["']?(?:1(?:\.0+)?|\{[^}]*["']reward["']:\s*1(?:\.0+)?[^}]*\})(?:\\n)?["']?\s*>\s*["']?\S*reward\.(?:txt|json)"""
)
DECIDES = re.compile(r"^\s*(?:if|elif|case|while|until|for|else)\b|\|\||&&|\bset\s+-\w*e|\[\[?\s|\bexit\b|\btrap\b")
JUDGE = re.compile(r"\b(?:pytest|py\.test|unittest|python3?|node|diff|cmp)\b")
SWALLOWED = re.compile(r"\b(?:pytest|unittest|python3?\s+\S*test\S*|python3?\s+\S*check\S*)\b.*(?:\|\|\s*(?:true|:|exit\s+0)\b|;\s*true\b)")
PYTEST = re.compile(r"\b(?:pytest|py\.test)\b")
MODULE = re.compile(r"\bpython3?\s+(?!-\w*P)(?:-[a-zA-Z]*\s+)*-m\s+(pytest|unittest)\b")
AGENT = r"/(?:app|workspace|work|home|root|srv|data|repo|project|testbed)"
MOVED = re.compile(rf"^\s*(?:cd|pushd)\s+[\"']?({AGENT}\b\S*)")
OWN_TESTS = re.compile(rf"\b(?:pytest|unittest)\b.*\s[\"']?({AGENT}/\S*tests?\b\S*)")
SOURCED = re.compile(rf"^\s*(?:source|\.)\s+[\"']?((?:{AGENT}/\S+)|(?:~|\$HOME|\$\{{HOME\}})/\.(?:bashrc|profile|bash_profile|env)\S*)")
SCRAPED = re.compile(r"\bgrep\b[^|;&]*[\"']?\^?(FAILED|PASSED|passed|failed|ERROR|OK|SUCCESS)\b")
TAKEN = re.compile(rf"(?:cat|cp|mv|head|tail|jq)\s+(?:-\S+\s+|[\"'.\w]+\s+)?[\"']?({AGENT}/\S+?)[\"']?\s+(?:>\s*)?[\"']?\S*reward\.(?:txt|json)")
INSTALLS = re.compile(r"\b(apt(?:-get)?\s+install|pip3?\s+install|uv\s+(?:add|pip\s+install)|uvx|npm\s+(?:i|install|ci)|conda\s+install)\b")
DOWNLOADS = re.compile(r"\b(curl|wget|git\s+clone)\b")
TESTS_READ = re.compile(r"(?:^|[\s\"'=(<])(?:/tests/|\.\./tests/|/logs/verifier)")
COMPUTES = re.compile(
    r"\b(?:python3?|awk|sed|sort|jq|node|perl|ruby|gcc|make|bc|git|tr|cut|uniq|grep|wc|patch|curl|sqlite3|for|while|tar|unzip|find|xargs)\b|\$\(|\bif\b"
)
WRITES = re.compile(r">\s*\S+|\btee\b")
PROGRAM = re.compile(r"(?:>|\btee\b)\s*\S+\.(?:py|sh|js|ts|c|cc|cpp|h|go|rs|java|rb|pl|sql|toml|ya?ml|patch)\b")


@rule("unconditional-reward", proved_by="nothing/no_op")
def unconditional_reward(subject: Subject) -> Iterator[Found]:
    """Full reward is written where nothing was decided."""
    lines = subject.test.splitlines()
    decided = 0
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("#"):
            continue
        decided += bool(DECIDES.search(line))
        if PAID.search(line) and not decided:
            yield Found(TEST, number, "pays in any case")


@rule("test-sh-swallows-failure", proved_by="nothing/no_op")
def test_sh_swallows_failure(subject: Subject) -> Iterator[Found]:
    """The failure of the tests is turned into a success."""
    yield from matches(TEST, subject.test, SWALLOWED, "{match}")


@rule("set-e-reward-abort", proved_by="nothing/no_op")
def set_e_reward_abort(subject: Subject) -> Iterator[Found]:
    """With `set -e` the script ends at the first failed test, and no reward of 0 is ever written."""
    strict: int | None = None
    written = False
    for number, line in enumerate(subject.test.splitlines(), 1):
        if re.search(r"^\s*set\s+-\w*e|^\s*set\s+-o\s+errexit", line):
            strict = number
        elif re.search(r"^\s*set\s+\+\w*e|\btrap\b", line):
            strict = None
        elif REWARD.search(line) and re.search(r">\s*\S*reward", line):
            written = True
        elif strict and not written and PYTEST.search(line) and not re.search(r"\|\||&&|^\s*(?:if|while|until)\b|^\s*#|=\$\(", line):
            yield Found(TEST, number, f"ends the script by `set -e` of line {strict} where a test fails, before a reward is written")


@rule("reward-path-nonstandard", proved_by="reference")
def reward_path_nonstandard(subject: Subject) -> Iterator[Found]:
    """Nothing of the verifier names the place where a reward is looked for."""
    if (
        subject.test
        and not any("/logs/verifier" in text for _, text in subject.test_texts())
        and not any("/logs/verifier" in subject.text(f.path) for f in subject.tree.below("tests"))
    ):
        yield Found(TEST, 1, "no word of /logs/verifier/reward.txt or reward.json")


@rule("agent-writable-reward-signal", proved_by="exploit/reward_forgery")
def agent_writable_reward_signal(subject: Subject) -> Iterator[Found]:
    """The reward is taken from a file of the agent's."""
    yield from matches(TEST, subject.test, TAKEN, "the reward comes from {0}, which the agent writes")


@rule("agent-writable-verifier", proved_by="exploit/skipped_tests")
def agent_writable_verifier(subject: Subject) -> Iterator[Found]:
    """The tests that decide lie where the agent may change, skip or delete them."""
    if not subject.separate:
        yield from matches(TEST, subject.test, OWN_TESTS, "{0} may be edited by the agent")


@rule("plantable-conftest", proved_by="exploit/conftest_hook")
def plantable_conftest(subject: Subject) -> Iterator[Found]:
    """pytest runs in the agent's folder and takes its conftest.py and settings along."""
    if subject.separate:
        return
    moved = False
    for number, line in enumerate(subject.test.splitlines(), 1):
        moved = bool(MOVED.search(line)) or (moved and not re.match(r"\s*cd\s", line))
        inside = moved or OWN_TESTS.search(line)
        if inside and PYTEST.search(line) and not line.lstrip().startswith("#") and not ("--noconftest" in line and re.search(r"\s-c\s", line)):
            yield Found(TEST, number, "without --noconftest and -c: a conftest.py or pytest.ini of the agent's is obeyed")


@rule("import-from-agent-folder", proved_by="exploit/import_shim")
def import_from_agent_folder(subject: Subject) -> Iterator[Found]:
    """`python -m` puts the folder it is started in first on the path: a module of the agent's stands in for the test runner."""
    if subject.separate:
        return
    moved = False
    for number, line in enumerate(subject.test.splitlines(), 1):
        moved = bool(MOVED.search(line)) or (moved and not re.match(r"\s*cd\s", line))
        if moved and (found := MODULE.search(line)) and not line.lstrip().startswith("#"):
            yield Found(TEST, number, f"python -m {found[1]} in the agent's folder, without -P")


@rule("sources-agent-file", proved_by="exploit/path_shim")
def sources_agent_file(subject: Subject) -> Iterator[Found]:
    """The verifier's shell runs a file that the agent may write."""
    if not subject.separate:
        yield from matches(TEST, subject.test, SOURCED, "runs {0} in its own shell")


@rule("output-scraped", proved_by="exploit/early_exit")
def output_scraped(subject: Subject) -> Iterator[Found]:
    """The reward is read from what the tests printed; what the agent's code prints, or a run that ends early, looks alike."""
    if PYTEST.search(subject.test) or "unittest" in subject.test:
        yield from matches(TEST, subject.test, SCRAPED, "decides by the printed word {0!r}")


@rule("verifier-runtime-install", proved_by="reference")
def verifier_runtime_install(subject: Subject) -> Iterator[Found]:
    """The verifier installs packages when it runs: it fails without a network, and changes with every release."""
    yield from matches(TEST, subject.test, INSTALLS, "{0}")


@rule("verifier-network-download", proved_by="reference")
def verifier_network_download(subject: Subject) -> Iterator[Found]:
    """The verifier downloads something when it runs."""
    yield from matches(TEST, subject.test, DOWNLOADS, "{0}")


@rule("reference-solve-reads-truth", proved_by="reference")
def reference_solve_reads_truth(subject: Subject) -> Iterator[Found]:
    """The reference takes its answer from the tests, so that its success shows nothing."""
    yield from matches(SOLVE, subject.solve, TESTS_READ, "reads {match}")


@rule("hardcoded-solution", proved_by="twin")
def hardcoded_solution(subject: Subject) -> Iterator[Found]:
    """The reference writes an answer that it does not work out."""
    if WRITES.search(subject.solve) and not PROGRAM.search(subject.solve) and not COMPUTES.search(_without_documents(subject.solve)):
        yield Found(SOLVE, 1, "only writes what it already knows")


def _without_documents(script: str) -> str:
    return re.sub(r"<<-?\s*[\"']?(\w+)[\"']?(.*?)\n.*?^\s*\1$", r"\2", script, flags=re.DOTALL | re.MULTILINE)


@rule("broad-process-kill", proved_by="reference")
def broad_process_kill(subject: Subject) -> Iterator[Found]:
    """Ends processes by a name that others bear too, the harness perhaps."""
    pattern = re.compile(r"\b(pkill|killall)\b[^|;&\n]*\b(?:python3?|bash|sh|node|java)\b|\bkill\s+-9\s+-1\b")
    for path in (SOLVE, TEST):
        yield from matches(path, subject.text(path), pattern, "{match}")
