"""The console script in an installation that lacks something."""

import subprocess
import sys

import pytest

WITHOUT = "import sys; sys.modules['{}'] = None; sys.argv = ['inspector', *{!r}]; import inspector.cli; inspector.cli.main()"


@pytest.mark.parametrize(
    ("missing", "words", "extra"),
    [
        ("typer", ["audit", "x"], "local"),
        ("rich", [], "local"),
        ("yaml", ["environments", "declare", "x"], "local"),
        ("psycopg", ["up", "--data", "x"], "server"),
    ],
)
def test_a_missing_extra_is_named(missing, words, extra, tmp_path):
    ran = subprocess.run([sys.executable, "-c", WITHOUT.format(missing, words)], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert ran.returncode == 2
    assert f"inspector[{extra}]" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_auditing_loads_no_server_library():
    script = (
        "import sys, inspector.cli.auditing, inspector.cli.app;"
        "print([m for m in sys.modules if m.split('.')[0] in {'sqlalchemy', 'psycopg', 'sqlmodel', 'fastapi', 'celery'} or m.startswith('inspector.store')])"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60).stdout.strip() == "[]"


HEAVY = {
    "numpy",
    "scipy",
    "sklearn",
    "httpx",
    "re2",
    "tree_sitter",
    "sqlalchemy",
    "fastapi",
    "celery",
    "inspector.formats",
    "inspector.client",
}


@pytest.mark.parametrize("words", [["--help"], ["probe", "--help"], ["audit", "--help"]])
def test_help_waits_for_nothing_that_only_the_work_needs(words, tmp_path):
    script = f"""if True:
        import atexit, sys
        atexit.register(lambda: print(*sorted({HEAVY!r} & sys.modules.keys()), file=sys.stderr))
        sys.argv = ["inspector", *{words!r}]
        from inspector.cli import main
        main()"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (ran.returncode, ran.stderr.split()) == (0, [])


def test_without_words_it_helps(run):
    assert "audit" in run().out + run("--help").out
