"""Records of the machine file, which every command reads: dataclasses that import no pydantic.

Importing pydantic and building its validators takes longer than all the rest of `atoll topo`.
These records have the methods of `atoll.schema.base.Record` that their users need, and `parse`
there checks a file against them as it does against any other record.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def record(kind: type[T]) -> type[T]:
    """A frozen dataclass. `Plain` has the methods whose generation for each class is slow."""
    return dataclass(frozen=True, kw_only=True, repr=False, eq=False)(kind)


@record
class Plain:
    """An immutable value of the machine file. Its types are not checked when it is made."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}  # for `parse`

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        names = (field.name for field in fields(self))
        values = (f"{name}={value!r}" for name, value in zip(names, self._values(), strict=True))
        return f"{type(self).__name__}({', '.join(values)})"

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))

    def model_copy(self, *, update: dict[str, Any]) -> Self:
        """A copy with other values of some fields; what was computed from the old ones is not."""
        return replace(self, **update)

    def model_dump(self) -> dict[str, Any]:
        return asdict(self)

    def model_dump_json(self, *, indent: int | None = None) -> str:
        compact = None if indent else (",", ":")
        return json.dumps(asdict(self), indent=indent, separators=compact, ensure_ascii=False)


def tuples(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with every list in them as a tuple."""
    return {name: _frozen(value) for name, value in fields.items()}


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
