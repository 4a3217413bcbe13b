"""Rules about the verifier's Python files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import partial

from inspector.environments.lint.hints import Found, Rules, Subject, rule_of

RULES: Rules = []
rule = partial(rule_of, RULES)
Function = ast.FunctionDef | ast.AsyncFunctionDef
AGENT = re.compile(r"^/(?:app|workspace|work|home|root|srv|data|repo|project|testbed|output)\b")
EXISTS = frozenset({"exists", "is_file", "isfile", "is_dir", "isdir"})
CHECKS = re.compile(r"^(?:assert\w*|raises|fail|check\w*|verify\w*|compare\w*|expect\w*|validate\w*|must\w*)$")
RISKY = frozenset({"eval", "exec", "pickle.load", "pickle.loads", "yaml.load", "yaml.unsafe_load", "marshal.loads", "dill.load", "joblib.load"})
RANDOM = re.compile(r"^(?:random|np\.random|numpy\.random|secrets)\.(?!seed$|Random$|default_rng$|RandomState$|SystemRandom$)\w+$")
CLOCK = frozenset({"time.time", "datetime.now", "datetime.datetime.now", "datetime.utcnow", "datetime.datetime.utcnow", "date.today", "datetime.date.today"})
REMOTE = re.compile(r"^(?:requests|httpx|urllib\.request|aiohttp)\.(?:get|post|put|head|urlopen|request|urlretrieve|Client|ClientSession)$")
PROCESS = frozenset({"subprocess.run", "subprocess.call", "subprocess.check_call", "subprocess.check_output"})
LOOSE = 0.2  # relative: an answer that far off is another answer
SHORT = 3  # characters that stand in a text by chance


def _tests(module: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(module) if isinstance(node, Function) and node.name.startswith("test"))


def _name(node: ast.expr) -> str:
    """A call's name, dotted; empty where it has none."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join(reversed([*parts, node.id])) if isinstance(node, ast.Name) else ".".join(reversed(parts))


def _calls(node: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    return ((each, _name(each.func)) for each in ast.walk(node) if isinstance(each, ast.Call))


def _asserts(node: ast.AST) -> list[ast.Assert]:
    return [each for each in ast.walk(node) if isinstance(each, ast.Assert)]


@rule("vacuous-test", proved_by="nothing/no_op")
def vacuous_test(subject: Subject) -> Iterator[Found]:
    """An assertion that holds whatever was done."""
    for path, module in subject.test_modules.items():
        for each in _asserts(module):
            constant = isinstance(each.test, ast.Constant) and bool(each.test.value)
            if constant or (isinstance(each.test, ast.Tuple) and each.test.elts) or _same(each.test):
                yield Found(path, each.lineno, "always true")


def _same(node: ast.expr) -> bool:
    return isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.GtE | ast.LtE) and ast.dump(node.left) == ast.dump(node.comparators[0])


@rule("no-assertion", proved_by="nothing/no_op")
def no_assertion(subject: Subject) -> Iterator[Found]:
    """A test that checks nothing: it passes where nothing raises."""
    for path, module in subject.test_modules.items():
        for each in _tests(module):
            checks = any(CHECKS.match(name.rpartition(".")[2]) for _, name in _calls(each))
            if not checks and not any(isinstance(node, ast.Assert | ast.Raise) for node in ast.walk(each)):
                yield Found(path, each.lineno, f"{each.name} asserts nothing")


@rule("swallowed-assertion", proved_by="nothing/no_op")
def swallowed_assertion(subject: Subject) -> Iterator[Found]:
    """A failed assertion is caught and forgotten."""
    for path, module in subject.test_modules.items():
        for each in (node for node in ast.walk(module) if isinstance(node, ast.Try)):
            if any(_asserts(node) for node in each.body):
                yield from (Found(path, handler.lineno, "catches the assertion above and goes on") for handler in each.handlers if _forgets(handler))


def _forgets(handler: ast.ExceptHandler) -> bool:
    names = [_name(node) for node in (handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]) if node is not None]
    broad = handler.type is None or bool({"Exception", "BaseException", "AssertionError"} & set(names))
    acts = any(isinstance(node, ast.Raise | ast.Return | ast.Assert) for node in ast.walk(handler))
    return broad and not acts and not any(name.rpartition(".")[2] in ("fail", "exit") for _, name in _calls(handler))


@rule("except-returns-reward", proved_by="malformed")
def except_returns_reward(subject: Subject) -> Iterator[Found]:
    """Where grading fails, the submission is paid."""
    for path, module in subject.test_modules.items():
        for handler in (node for node in ast.walk(module) if isinstance(node, ast.ExceptHandler)):
            for each in (node for node in ast.walk(handler) if isinstance(node, ast.Return)):
                if isinstance(each.value, ast.Constant) and each.value.value in (1, 1.0, True):
                    yield Found(path, each.lineno, f"returns {each.value.value} from an exception")


@rule("existence-only", proved_by="wrong")
def existence_only(subject: Subject) -> Iterator[Found]:
    """All that is asserted is that files exist: empty ones pass."""
    found = [(path, each) for path, module in subject.test_modules.items() for each in _asserts(module)]
    if found and all(_is_existence(each.test) for _, each in found):
        path, first = found[0]
        yield Found(path, first.lineno, f"{len(found)} assertions, all about existence")


def _is_existence(node: ast.expr) -> bool:
    if isinstance(node, ast.BoolOp):
        return all(map(_is_existence, node.values))
    return isinstance(node, ast.Call) and _name(node.func).rpartition(".")[2] in EXISTS


@rule("skipped-scored-test", proved_by="nothing/no_op")
def skipped_scored_test(subject: Subject) -> Iterator[Found]:
    """A test that is counted, and may be skipped or expected to fail."""
    for path, module in subject.test_modules.items():
        for each in ast.walk(module):
            if isinstance(each, ast.Attribute) and _name(each) in (
                "pytest.mark.skip",
                "pytest.mark.skipif",
                "pytest.mark.xfail",
                "pytest.skip",
                "unittest.skip",
                "pytest.importorskip",
            ):
                yield Found(path, each.lineno, _name(each))


@rule("empty-parametrize", proved_by="nothing/no_op")
def empty_parametrize(subject: Subject) -> Iterator[Found]:
    """A test over no cases is skipped, never failed."""
    for path, module in subject.test_modules.items():
        for call, name in _calls(module):
            if name == "pytest.mark.parametrize" and len(call.args) > 1 and isinstance(call.args[1], ast.List | ast.Tuple) and not call.args[1].elts:
                yield Found(path, call.lineno, "no cases")


@rule("test-imports-solution", proved_by="reference")
def test_imports_solution(subject: Subject) -> Iterator[Found]:
    """The verifier reads the solution folder, which is not there while it grades."""
    for path, module in subject.test_modules.items():
        for each in ast.walk(module):
            if isinstance(each, ast.Constant) and isinstance(each.value, str) and re.match(r"^(?:/|\.\./)solution(?:/|$)", each.value):
                yield Found(path, each.lineno, f"reads {each.value[:80]}")


@rule("submission-in-process", proved_by="exploit/always_equal")
def submission_in_process(subject: Subject) -> Iterator[Found]:
    """The agent's code is imported into the verifier's own process: it may return objects that equal everything, end the process, or change the tests."""
    for path, module in subject.test_modules.items():
        for call, name in _calls(module):
            places = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str) and AGENT.match(each.value)]
            loads = name in ("sys.path.insert", "sys.path.append", "runpy.run_path", "spec_from_file_location") or name.endswith("spec_from_file_location")
            if loads and places:
                yield Found(path, call.lineno, f"{name} of {places[0][:80]}")


@rule("runs-submission-text", proved_by="malformed")
def runs_submission_text(subject: Subject) -> Iterator[Found]:
    """The verifier evaluates or unpickles something; if the agent wrote it, the agent decides what runs."""
    for path, module in subject.test_modules.items():
        for call, name in _calls(module):
            safe = name == "yaml.load" and any("Safe" in ast.dump(keyword.value) for keyword in call.keywords)
            if name in RISKY and not safe and call.args and not isinstance(call.args[0], ast.Constant):
                yield Found(path, call.lineno, f"{name} of something that is no literal")


@rule("substring-match", proved_by="exploit/all_answers")
def substring_match(subject: Subject) -> Iterator[Found]:
    """A few letters somewhere in a text are enough; a text with every answer passes."""
    for path, module in subject.test_modules.items():
        for each in _asserts(module):
            if (text := _contained(each.test)) is not None:
                yield Found(path, each.lineno, f"{text[:60]!r} anywhere in a text")


def _contained(node: ast.expr) -> str | None:
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
        right = ast.unparse(node.comparators[0])
        whole = re.search(r"(?:text|content|output|stdout|answer|response|read\(\)|lower\(\)|body|data)$", right)
        return node.left.value if whole or len(node.left.value) <= SHORT else None
    return None


@rule("brittle-string-match", proved_by="variation")
def brittle_string_match(subject: Subject) -> Iterator[Found]:
    """Every byte must agree: a line end more is a wrong answer."""
    for path, module in subject.test_modules.items():
        for each in (node for node in ast.walk(module) if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq)):
            whole = [
                side
                for side in (each.left, *each.comparators)
                if isinstance(side, ast.Call) and _name(side.func).rpartition(".")[2] in ("read", "read_text", "read_bytes")
            ]
            if whole:
                yield Found(path, each.lineno, "compares a whole file byte by byte")


@rule("loose-tolerance", proved_by="wrong")
def loose_tolerance(subject: Subject) -> Iterator[Found]:
    """A tolerance so wide that another number passes."""
    for path, module in subject.test_modules.items():
        for call, name in _calls(module):
            if name.rpartition(".")[2] in ("approx", "isclose", "allclose", "assert_allclose"):
                for keyword in call.keywords:
                    value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                    if keyword.arg in ("rel", "rtol", "rel_tol") and isinstance(value, int | float) and value >= LOOSE:
                        yield Found(path, call.lineno, f"{keyword.arg}={value}")


@rule("unseeded-random", proved_by="reference")
def unseeded_random(subject: Subject) -> Iterator[Found]:
    """The verifier draws by chance and fixes no seed: one submission, two rewards."""
    for path, module in subject.test_modules.items():
        calls = list(_calls(module))
        if not any(name.rpartition(".")[2] in ("seed", "default_rng", "Random", "RandomState") and call.args for call, name in calls):
            yield from (Found(path, call.lineno, f"{name} without a seed") for call, name in calls if RANDOM.match(name))


@rule("wall-clock", proved_by="reference")
def wall_clock(subject: Subject) -> Iterator[Found]:
    """An assertion on the time of day: what passes today fails tomorrow."""
    for path, module in subject.test_modules.items():
        for each in _asserts(module):
            yield from (Found(path, call.lineno, f"asserts on {name}") for call, name in _calls(each) if name in CLOCK)


@rule("runtime-network", proved_by="reference")
def runtime_network(subject: Subject) -> Iterator[Found]:
    """A test asks an address: its answer depends on who is up."""
    for path, module in subject.test_modules.items():
        for call, name in _calls(module):
            if REMOTE.match(name) and not _local(call.args):
                yield Found(path, call.lineno, name)


def _local(arguments: Sequence[ast.expr]) -> bool:
    return bool(arguments) and any(host in ast.unparse(arguments[0]) for host in ("localhost", "127.0.0.1", "0.0.0.0"))  # noqa: S104 -- compared, not bound


@rule("verifier-unbounded-call", proved_by="exploit/early_exit")
def verifier_unbounded_call(subject: Subject) -> Iterator[Found]:
    """The agent's program is run without a time limit: a loop in it takes the verifier along."""
    for path, module in subject.test_modules.items():
        for call, name in _calls(module):
            if name in PROCESS and not any(keyword.arg in ("timeout", None) for keyword in call.keywords):
                yield Found(path, call.lineno, f"{name} without timeout")
