"""From an engine's tree of operators to the list that all engines have in common. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf

from pydantic import ValidationError

from atoll.schema.base import what_is_no_json, what_is_wrong
from atoll.schema.operators import Kind, Operator


@contextmanager
def reading() -> Iterator[None]:
    """Around the reader of a document that an engine wrote: whatever is wrong with the document is
    a ValueError of one line."""
    try:
        yield
    except ValidationError as fault:
        raise ValueError(what_is_wrong(fault)) from None
    except (ValueError, RecursionError) as fault:
        raise ValueError(what_is_no_json(fault)) from None
    except (LookupError, TypeError, AttributeError, OverflowError) as fault:
        why = "is not of the kind that is expected"
        if isinstance(fault, KeyError) and isinstance(fault.args[0], str):
            why = f"has no {fault}"
        raise ValueError(f"a part of it {why}") from None


def counted(figure: float) -> float:
    """A time or a number of an engine's document. Raises ValueError if it cannot be one."""
    if not 0 <= figure < inf:
        raise ValueError(f"a time or a number in it is {figure:g}")
    return figure


@dataclass(frozen=True, slots=True)
class Node:
    """An operator with those below it; the first fields are those of `Operator`."""

    operator: str
    kind: Kind
    own_s: float | None
    rows: int | None
    below: tuple[Node, ...] = ()
    table: str = ""  # that it reads itself
    others: tuple[str, ...] = ()  # tables read below it by operators that are not listed again
    node: str = ""  # empty: its path in the tree
    join: str = ""
    distribution: str = ""
    tasks: int | None = None
    # For a graph (`atoll.engines.graphs`), over all executions of the operator in one of the query.
    cpu_s: float | None = None  # CPU time in it alone, if it is counted apart from `own_s`
    gives_bytes: float | None = None  # to the one above
    memory_bytes: float | None = None  # read from memory and written to it
    blocking: bool = False
    parallel: bool = False


def kept_bytes(
    kind: Kind, gives_bytes: float | None, below: Sequence[Node], *, blocking: bool
) -> float | None:
    """What an operator keeps in memory before it gives anything: the right side of a hash join,
    the groups of an aggregate, all that a sort or a window takes. 0: it keeps nothing; None: not
    known."""
    if kind is Kind.JOIN:
        return below[1].gives_bytes if len(below) > 1 else 0.0
    if not blocking:
        return 0.0
    return gives_bytes if kind is Kind.AGGREGATE or not below else below[0].gives_bytes


def listed(root: Node) -> tuple[Operator, ...]:
    """The operators of the tree, each before those below it. Linear, but for the tables."""
    return tuple(_walk(root, "0"))


def _walk(node: Node, path: str) -> Iterator[Operator]:
    yield Operator(
        node=node.node or path,
        operator=node.operator,
        kind=node.kind,
        tables=tuple(sorted(tables_of(node))),
        own_s=node.own_s,
        rows=node.rows,
        join=node.join,
        distribution=node.distribution,
        tasks=node.tasks,
    )
    for number, child in enumerate(node.below):
        yield from _walk(child, f"{path}.{number}")


def tables_of(node: Node) -> Iterator[str]:
    """The tables that it reads or that are read below it."""
    if node.table:
        yield node.table
    yield from node.others
    for child in node.below:
        yield from tables_of(child)


def kind_of(name: str) -> Kind:
    """The kind of an operator by the words in its name, in any engine's spelling."""
    plain = name.lower().replace("_", "").replace(" ", "")
    return next((kind for word, kind in _WORDS if word in plain), Kind.OTHER)


# The first word that is found decides: 'HASH_GROUP_BY' groups, 'HASH_JOIN' joins.
_WORDS = (
    ("remote", Kind.EXCHANGE),
    ("exchange", Kind.EXCHANGE),
    ("gather", Kind.EXCHANGE),
    ("localmerge", Kind.EXCHANGE),
    ("join", Kind.JOIN),
    ("nestedloop", Kind.JOIN),
    ("crossproduct", Kind.JOIN),
    ("aggregate", Kind.AGGREGATE),
    ("groupby", Kind.AGGREGATE),
    ("group", Kind.AGGREGATE),
    ("distinct", Kind.AGGREGATE),
    ("window", Kind.WINDOW),
    ("sort", Kind.SORT),
    ("order", Kind.SORT),
    ("topn", Kind.SORT),
    ("scan", Kind.SCAN),
    ("read", Kind.SCAN),
    ("filter", Kind.FILTER),
    ("project", Kind.FILTER),
)
