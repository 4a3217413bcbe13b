"""Checks come in by entry points; what is broken is listed, and nothing may take the place of the built-in ones."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint, distributions
from pathlib import Path
from types import ModuleType

import pytest

from inspector import catalog
from inspector.catalog import Catalog, ForeignChecks
from inspector.errors import MisusedCheck

HEAD = """
from collections.abc import Iterator
from typing import Annotated
from msgspec import Meta
from inspector.check import Cause, Finding, Tier, Trajectory, check
"""
CHECK = """
@check(version=1, tier=Tier.TEXT, cause=Cause.ANOMALY)
def {name}(trajectory: Trajectory, *, limit: Annotated[int, Meta(ge=1)] = 1) -> Iterator[Finding]:
    '''It looks.'''
    yield from ()
"""


class Site:
    """A folder of installed distributions."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def install(self, distribution: str, points: str, **files: str) -> None:
        """Modules by dotted name, and the entry points of the distribution."""
        made = self.root / f"{distribution}-1.0.dist-info"
        made.mkdir()
        (made / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (made / "entry_points.txt").write_text(f"[inspector.checks]\n{points}\n")
        for name, text in files.items():
            path = self.root / (name.replace("__slash__", "/") + ".py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)

    def points(self) -> list[EntryPoint]:
        return [point for found in distributions(path=[str(self.root)]) for point in found.entry_points if point.group == catalog.GROUP]

    def read(self) -> Catalog:
        return catalog.read(self.points())


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield Site(tmp_path)
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_the_builtin_checks_are_installed():
    found = catalog.load()
    assert "builtin/paid_although_tests_failed" in found.checks
    assert not found.broken
    assert not found.duplicates
    assert catalog.load() is found


def test_a_package_is_walked(site):
    site.install(
        "acme-checks",
        "acme = acme_checks",
        acme_checks__slash____init__=HEAD + CHECK.format(name="outer"),
        acme_checks__slash__inner=HEAD + "from acme_checks import outer\n" + CHECK.format(name="inner"),
        acme_checks__slash____main__="raise SystemExit('not to be run')",
    )
    found = site.read()
    assert list(found.checks) == ["acme/inner", "acme/outer"]
    assert found.checks["acme/inner"].name == "acme/inner"
    assert not found.broken
    assert not found.duplicates


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("1 / 0", "ZeroDivisionError"),
        ("def (", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        (HEAD + CHECK.format(name="unbounded").replace("= 1)", "= 0)"), "MisusedCheck: unbounded.limit=0"),
        ("raise RuntimeError('\\x1b[2Jboom')", "RuntimeError: ␛[2Jboom"),
    ],
)
def test_a_broken_module_is_listed_and_stops_nothing(site, text, reason):
    site.install("acme", "acme = acme_pack", acme_pack__slash____init__="", acme_pack__slash__bad=text, acme_pack__slash__good=HEAD + CHECK.format(name="good"))
    found = site.read()
    assert list(found.checks) == ["acme/good"]
    ((name, why),) = found.broken
    assert name == "acme_pack.bad"
    assert reason in why


def test_a_missing_package_is_listed(site):
    site.install("acme", "acme = acme_nowhere")
    assert "No module named 'acme_nowhere'" in site.read().broken[0].reason


def test_duplicates_are_listed(site):
    two = HEAD + CHECK.format(name="twice")
    site.install("acme", "acme = acme_twice", acme_twice__slash____init__="", acme_twice__slash__a=two, acme_twice__slash__b=two)
    found = site.read()
    assert found.checks["acme/twice"].function.__module__ == "acme_twice.a"
    assert found.duplicates == (("acme/twice", "acme_twice.b has one more of that name; the one of acme_twice.a is used"),)


def test_one_check_under_two_names_is_one_check(site):
    site.install("acme", "acme = acme_alias", acme_alias=HEAD + CHECK.format(name="one") + "\nalso = one\n")
    found = site.read()
    assert list(found.checks) == ["acme/one"]
    assert not found.duplicates


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        ("builtin = acme_pack", "is kept for the checks of 'inspector'"),
        ("acme = checks.record", "in the package of the built-in checks"),
        ("acme = acme_pack:good", "names an object"),
        ("a/b = acme_pack", "letters, digits, dots, dashes"),
    ],
)
def test_an_entry_point_that_claims_too_much_is_listed(site, points, reason):
    site.install("acme", points, acme_pack=HEAD + CHECK.format(name="good"))
    found = site.read()
    assert not found.checks
    assert reason in found.broken[0].reason


def test_a_foreign_package_named_checks_is_an_error_and_is_not_run(site, tmp_path):
    """In a process of its own, since this one has imported ours."""
    site.install("inspector", "builtin = checks", checks__slash____init__="raise SystemExit('it was run')")
    root = str(Path(catalog.__file__).parent.parent)
    code = f"import sys; sys.path.append({root!r})\nfrom inspector import catalog\ncatalog.load()"
    done = subprocess.run([sys.executable, "-c", code], cwd="/", env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=60, check=False)
    assert f"the package 'checks' on the path is not inspector's own: expected at {root}/checks, found at {tmp_path}/checks" in done.stderr
    assert "it was run" not in done.stderr


def test_a_module_that_was_put_in_the_place_of_ours_is_an_error(site, monkeypatch):
    site.install("inspector", "builtin = checks")
    monkeypatch.setitem(sys.modules, "checks", ModuleType("checks"))
    with pytest.raises(ForeignChecks, match="found at nowhere"):
        site.read()


def test_no_builtin_checks_at_all_is_an_error(site, monkeypatch):
    monkeypatch.setattr(catalog, "entry_points", lambda group: site.points())
    with pytest.raises(ForeignChecks, match="no installed distribution registers the built-in checks"):
        catalog.load.__wrapped__()


# --- selection -------------------------------------------------------------------------------------------------------


@pytest.fixture
def three(site):
    site.install(
        "acme",
        "acme = acme_three\nzeta = zeta_one",
        acme_three=HEAD + CHECK.format(name="one") + CHECK.format(name="two"),
        zeta_one=HEAD + CHECK.format(name="one"),
    )
    return site.read()


@pytest.mark.parametrize(
    ("only", "ignore", "chosen"),
    [
        ([], [], "acme/one acme/two zeta/one"),
        (["acme"], [], "acme/one acme/two"),
        (["*/one"], [], "acme/one zeta/one"),
        ([], ["zeta"], "acme/one acme/two"),
        (["acme"], ["acme/two"], "acme/one"),
        (["acme/two"], ["acme"], "acme/two"),
        (["acme"], ["acme"], ""),
        (["acme/*"], ["acme/t*"], "acme/one"),
    ],
)
def test_the_more_exact_selector_wins(three, only, ignore, chosen):
    assert " ".join(check.name for check in three.select(only=only, ignore=ignore)) == chosen


def test_parameters_go_to_their_check(three):
    chosen = three.select({"acme/two": {"limit": "5"}})
    assert [check.parameters for check in chosen] == [{"limit": 1}, {"limit": 5}, {"limit": 1}]


@pytest.mark.parametrize(
    ("selection", "reason"),
    [
        ({"only": ["acme/tow"]}, "no check is named 'acme/tow'; did you mean 'acme/two'?"),
        ({"ignore": ["omega"]}, "no check is named 'omega'"),
        ({"parameters": {"acme": {"limit": 1}}}, "no check is named 'acme'"),
        ({"parameters": {"acme/two": {"limit": 0}}}, "acme/two.limit=0"),
    ],
)
def test_a_selection_that_names_nothing_is_refused(three, selection, reason):
    with pytest.raises(MisusedCheck, match=reason.replace("?", r"\?")):
        three.select(**selection)
