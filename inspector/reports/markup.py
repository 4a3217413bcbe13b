"""Elements of HTML and XML; whatever is put into one is foreign text, and goes through one function, unless it is an element itself."""

from __future__ import annotations

import html

from inspector.showable import showable


class Markup(str):
    """Text that is markup already; only this module and literals make it."""

    __slots__ = ()


Inside = Markup | str | None


def text(foreign: str, *, limit: int | None = None, lines: bool = False) -> Markup:
    """Foreign text as text: no markup in it counts, and nothing in it that XML cannot carry or a reader cannot see. A cut says how much."""
    return Markup(html.escape(showable(foreign, limit=limit, lines=lines)))


def joined(*inside: Inside) -> Markup:
    """One after the other; strings become text, None nothing."""
    return Markup("".join(one if isinstance(one, Markup) else text(one) for one in inside if one is not None))


def tag(name: str, /, *inside: Inside, **attributes: str | int | None) -> Markup:
    """One element. `class_` is written class, `aria_label` aria-label; an attribute of None is left out."""
    written = "".join(f' {_name(key)}="{joined(str(value) if isinstance(value, int) else value)}"' for key, value in attributes.items() if value is not None)
    return Markup(f"<{name}{written}>{joined(*inside)}</{name}>")


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")
