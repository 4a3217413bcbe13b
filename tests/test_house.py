"""What the repository promises of itself: the lock, the base install, the order of imports, the schema."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine
from sqlmodel import SQLModel

import inspector.store.tables  # noqa: F401  (fills the metadata)
from inspector.store import migrate

ROOT = Path(__file__).parent.parent
LOCK = (ROOT / "requirements.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PINNED = {name.lower() for name in re.findall(r"^([\w.-]+)==", LOCK, re.M)}
SERVER = {
    "fastapi",
    "starlette",
    "sqlalchemy",
    "sqlmodel",
    "psycopg",
    "celery",
    "redis",
    "streamlit",
    "alembic",
    "uvicorn",
    "numpy",
    "scipy",
    "sklearn",
    "typer",
}
SOURCES = [path for folder in ("inspector", "checks") for path in (ROOT / folder).rglob("*.py")]
BASE_IMPORT_S = 3.0  # CPU, on a busy machine and with nothing compiled


# --- the lock --------------------------------------------------------------------------------------------------------


def test_the_lock_names_no_address():
    assert re.findall(r"https?:|file:|--index|--extra-index|--find-links| @ ", LOCK) == []


def test_the_lock_holds_no_torch():
    assert [name for name in PINNED if name.startswith(("torch", "nvidia", "triton", "trl"))] == []


def test_every_pin_has_hashes_and_is_no_local_version():
    blocks = re.split(r"\n(?=\S)", LOCK.strip())
    assert [block.splitlines()[0] for block in blocks if "--hash=sha256:" not in block] == []
    assert re.findall(r"^[\w.-]+==\S*\+\S*", LOCK, re.M) == []


@pytest.mark.parametrize("extra", ["base", "local", "server", "dashboard", "dev"])
def test_the_lock_holds_all_that_the_extras_name(extra):
    wanted = PROJECT["project"]["dependencies"] if extra == "base" else PROJECT["project"]["optional-dependencies"][extra]
    names = {re.match(r"[\w.-]+", one)[0].lower().replace("_", "-") for one in wanted}
    assert names - PINNED - {"inspector"} == set()


# --- the base install ------------------------------------------------------------------------------------------------


def _loaded(statement: str) -> tuple[set[str], float]:
    """Top-level packages that a statement draws in, and the CPU seconds it took."""
    code = f"import json, sys, time\nbegan = time.process_time()\n{statement}\nprint(json.dumps([sorted(sys.modules), time.process_time() - began]))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True).stdout
    modules, seconds = json.loads(out)
    return {name.partition(".")[0] for name in modules}, seconds


@pytest.mark.parametrize("statement", ["import inspector", "import inspector.client", "from inspector import formats", "import inspector.testing"])
def test_the_base_install_loads_no_server_library(statement):
    assert _loaded(statement)[0] & SERVER == set()


def test_a_trainer_waits_little_for_our_import():
    assert _loaded("import inspector.client")[1] < BASE_IMPORT_S


def test_a_trainer_needs_three_libraries():
    absent = SERVER | {"rich", "click", "pygments", "yaml", "re2", "hyperscan", "isal", "structlog", "prometheus_client"}
    hidden = f"sys.modules.update(dict.fromkeys({sorted(absent)!r}))"
    assert _loaded(f"{hidden}; import inspector.client, inspector.formats, inspector.testing; inspector.client.Client('http://127.0.0.1:9', 'k')")


def test_importing_the_command_needs_no_extra():
    assert _loaded("import inspector.cli")[0] & SERVER == set()


# --- entry points ----------------------------------------------------------------------------------------------------


def test_the_command_and_the_built_in_checks_are_installed():
    assert [point.value for point in entry_points(group="console_scripts") if point.name == "inspector"] == ["inspector.cli:main"]
    assert [point.value for point in entry_points(group="inspector.checks") if point.name == "builtin"] == ["checks"]


# --- SQL -------------------------------------------------------------------------------------------------------------

BORROWED = {"Engine", "Session"}  # handed through by those who open transactions; statements are made in store/ alone


def _imports(path: Path) -> list[tuple[str, str]]:
    found = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    return [(node.module or "", alias.name) for node in found for alias in node.names]


def test_statements_are_made_in_the_store_alone():
    outside = [path for path in SOURCES if "store" not in path.parts]
    borrowed = [f"{path.relative_to(ROOT)}: {name}" for path in outside for module, name in _imports(path) if re.match("sqlalchemy|sqlmodel", module)]
    assert [one for one in borrowed if one.partition(": ")[2] not in BORROWED] == []


def test_the_drivers_of_the_database_are_known_to_the_store_alone():
    outside = [path for path in SOURCES if "store" not in path.parts and path.name != "postgres.py"]  # which starts a server, and asks whether it answers
    assert [str(path.relative_to(ROOT)) for path in outside if re.search(r"^\s*(import|from) (psycopg|sqlalchemy\.exc)", path.read_text(), re.M)] == []


def test_only_one_function_commits():
    calls = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "commit"
    ]
    assert {call.partition(":")[0] for call in calls} <= {"inspector/store/session.py"}


# --- exceptions ------------------------------------------------------------------------------------------------------

FOREIGN = {"inspector/engine.py", "inspector/catalog.py", "inspector/client/hooks.py"}  # where someone else's code runs
BOXED = ("inspector/environments/runners/", "inspector/probe/boxed/")  # programs that run beside it, inside a box


def _is_broad(node: ast.ExceptHandler) -> bool:
    return node.type is None or (isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException"))


def test_only_those_who_call_foreign_code_catch_everything():
    broad = {
        str(path.relative_to(ROOT))
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ExceptHandler) and _is_broad(node)
    }
    assert {path for path in broad if not path.startswith(BOXED)} <= FOREIGN


# --- the schema ------------------------------------------------------------------------------------------------------


def test_the_migrations_give_the_tables(database):
    engine = create_engine(database.replace("postgresql://", "postgresql+psycopg://", 1))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        differences = compare_metadata(context, SQLModel.metadata)
    engine.dispose()
    assert differences == []


def test_there_is_one_newest_migration(database):
    script = command.ScriptDirectory.from_config(migrate.configuration(database))
    assert len(script.get_heads()) == 1
