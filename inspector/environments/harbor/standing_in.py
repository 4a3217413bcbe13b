"""The layer that makes a box's root look like a slim python image: its tools, and stand-ins for those that would need a network."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.resources import files
from typing import NamedTuple

from inspector.environments.trees import digest
from inspector.sandbox.protocol import Backend, Layer, Limits, Refused

BIN = "/opt/tools/bin"  # first on the path, and writable as the tools of an image are
TOOLS = "/opt/tools/lib"
ASKED = "command -v python3 && echo $PATH"  # the Python and the path of the box's own root
NAMES = {  # where it stands -> whose text it is
    **dict.fromkeys(("python3", "python", f"python3.{sys.version_info.minor}"), "python3"),
    **dict.fromkeys(("pip", "pip3"), "pip"),
    **dict.fromkeys(("pytest", "py.test"), "pytest"),
    **dict.fromkeys(("apt-get", "apt"), "apt-get"),
    **dict.fromkeys(("curl", "wget"), "curl"),
    "uv": "uv",
    "uvx": "uvx",
}
NOTED = re.compile(r"(?:^|[\s;&|(])(apt-get|apt|curl|wget|uv|uvx|pip3?)\s", re.MULTILINE)


class Tools(NamedTuple):
    """The layer, and the path on which its tools are found."""

    layer: Layer
    path: str


def tools(python: str) -> Iterator[tuple[str, bytes, int]]:
    """Path, content and mode of each file of the layer, for a Python of the box."""
    for name, text in NAMES.items():
        yield f"{BIN}/{name}", _filled(text, name, python), 0o755
    yield f"{TOOLS}/pip.py", _filled("pip.py", "pip", python), 0o644
    yield "/root/.local/bin/env", b"", 0o644  # what the installer of uv leaves, and scripts read
    yield "/root/.cargo/env", b"", 0o644


def tools_digest() -> str:
    """sha256 of the layer's files, in hexadecimal."""
    return digest((path.encode(), data) for path, data, _ in tools("python3"))


def make(backend: Backend) -> Tools:
    """The layer, made anew. Raises Refused and Broken."""
    with backend.create(limits=Limits(wall_s=30)) as box:
        python, _, path = box.run(["/bin/sh", "-c", ASKED]).stdout.decode().strip().partition("\n")
        if not path:
            raise Refused("no python3 on the path of a box")
        for place, data, mode in tools(python):
            box.write(place, data, mode=mode)
        return Tools(box.snapshot(), f"{BIN}:{path}")


def stand_ins(script: str) -> list[str]:
    """Which commands of a script are done by stand-ins."""
    return sorted(set(NOTED.findall(script)))


def _filled(text: str, name: str, python: str) -> bytes:
    content = (files("inspector.environments.harbor") / "tools" / text).read_text()
    for word, value in {"@PYTHON@": python, "@TOOLS@": TOOLS, "@BIN@": BIN, "@NAME@": name}.items():
        content = content.replace(word, value)
    return content.encode()
