"""The scripts and styles of the components, under an address that changes with them, so that browsers may keep them for good."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

ROUTE = "/assets/{digest}/{name:path}"
FOLDER = Path(__file__).parent / "components"
KINDS = {".js": "text/javascript", ".css": "text/css"}
FOR_GOOD = {"Cache-Control": "public, max-age=31536000, immutable"}


@cache
def files() -> dict[str, bytes]:
    """Name below the folder -> content."""
    return {str(path.relative_to(FOLDER)): path.read_bytes() for path in sorted(FOLDER.rglob("*")) if path.suffix in KINDS}


@cache
def address(name: str) -> str:
    """Where a browser finds the file of this name."""
    files()[name]
    digest = hashlib.blake2b(digest_size=8)
    for known, content in files().items():
        digest.update(known.encode() + b"\0" + content + b"\0")
    return f"/assets/{digest.hexdigest()}/{name}"


def text(name: str) -> str:
    """The file itself."""
    return files()[name].decode()


def script(name: str) -> str:
    """A script for Streamlit, which runs it from an address of its own: it stands for the module of this name."""
    return f"const place = new URL({address(name)!r}, location.origin);\nexport default (await import(place.href)).default;\n"  # of one line, it were a path


async def serve(request: Request) -> Response:
    """One file; an older digest gets the present one, to be asked for again."""
    name, digest = request.path_params["name"], request.path_params["digest"]
    if name not in files():
        return PlainTextResponse("there is no such file\n", 404)
    present = address(name) == f"/assets/{digest}/{name}"
    return Response(files()[name], headers=FOR_GOOD if present else {"Cache-Control": "no-store"}, media_type=KINDS[Path(name).suffix])
