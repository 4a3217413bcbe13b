"""Makes closed twins of structs: subclasses that refuse what they do not know, so that one decode tells a tidy record."""

from __future__ import annotations

import types
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

Scalar = str | int | float | bool | None
LEVELS = 7  # of free-form nesting that a twin takes; anything deeper is looked at more closely


def _shallow() -> Any:
    kind: Any = Scalar
    for _ in range(LEVELS):
        kind = Scalar | list[kind] | dict[str, kind]
    return kind


SHALLOW = _shallow()


@cache
def twin(kind: type[msgspec.Struct], required: tuple[str, ...] = ()) -> type[Any]:
    """A subclass of `kind` that refuses unknown fields and deep free-form values, in every struct below it too.

    It decodes at the speed of `kind`, and equals an instance of `kind` with the same fields.
    """
    return msgspec.defstruct(
        kind.__name__,
        [(field.name, _closed(field.type), _default(field, required)) for field in msgspec.structs.fields(kind)],
        bases=(kind,),
        namespace={"__eq__": _same_fields, "__hash__": lambda self: hash(kind(**msgspec.structs.asdict(self))), "__module__": kind.__module__},
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


def _same_fields(self: msgspec.Struct, other: object) -> bool:
    kin = isinstance(other, msgspec.Struct) and (isinstance(self, type(other)) or isinstance(other, type(self)))
    return kin and msgspec.structs.astuple(self) == msgspec.structs.astuple(other)  # type: ignore[arg-type]


def _default(field: msgspec.structs.FieldInfo, required: tuple[str, ...]) -> Any:
    if field.name in required:
        return msgspec.NODEFAULT
    if field.default_factory is not msgspec.NODEFAULT:
        return msgspec.field(default_factory=field.default_factory)
    return msgspec.field(default=field.default)


def _closed(kind: Any) -> Any:
    if kind is Any:
        return SHALLOW
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return twin(kind, ("steps",) if "steps" in kind.__struct_fields__ else ())
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return Annotated[(_closed(inner[0]), *inner[1:])]
    if origin in (Union, types.UnionType):
        return Union[tuple(_closed(arm) for arm in inner)]  # noqa: UP007  # `|` takes no computed list
    if origin in (list, dict):
        return origin[tuple(_closed(arm) for arm in inner)]
    return kind
