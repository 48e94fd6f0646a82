"""Records of the machine file, which every command reads: dataclasses that import no pydantic.

Importing pydantic and building its validators takes longer than all the rest of `atoll topo`.
These records have the methods of `atoll.schema.base.Record` that their users need, and `parse`
there checks a file against them as it does against any other record.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self


@dataclass(frozen=True)
class Plain:
    """An immutable value of the machine file, whose maker vouches for its types."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}  # for `parse`

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
