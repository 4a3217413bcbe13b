"""Finds the Python code that a verifier is imported from, for a box that has only what is installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from inspector.environments.protocol import Unreadable
from inspector.environments.trees import read_file, read_tree

FOLDER = "/srv/verifier"  # where it is found in a box
CODE_FILES, CODE_BYTES = 2000, 64 << 20
SIBLING_FILES = 200


def placed(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """By their paths in a box."""
    return {f"{FOLDER}/{path}": data for path, data in files.items()}


def find_code(module: str, folder: Path) -> tuple[Mapping[str, bytes], str]:
    """The files that a box needs to import a module, and its name there; none for what is installed beside us. Raises Unreadable."""
    if module.endswith(".py"):
        path = folder / module
        if not path.is_file():
            raise Unreadable(f"no file {module!r:.200}")
        return dict(_siblings(path.parent)), path.stem
    head = module.split(".")[0]
    if (folder / head).is_dir():
        tree = read_tree(folder / head, files=CODE_FILES, size=CODE_BYTES)
        return {f"{head}/{file.path}": tree.read(file.path) for file in tree.files if _wanted(file.path)}, module
    if (folder / f"{head}.py").is_file():
        return dict(_siblings(folder)), module
    return {}, module


def _wanted(path: str) -> bool:
    return not any(part.startswith(".") or part == "__pycache__" for part in PurePosixPath(path).parts)


def _siblings(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Python files of one folder, which may import each other."""
    names = sorted(path.name for path in folder.iterdir() if path.suffix == ".py" and not path.is_symlink())
    if len(names) > SIBLING_FILES:
        raise Unreadable(f"{folder.name}: more than {SIBLING_FILES} Python files beside the reward function")
    return ((name, read_file(folder, name, CODE_BYTES)) for name in names)
