"""Where graphs of operators come from: documents of engines and of the runtime, files of users, and
programs that run. Reads files; the readers are the engines'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from atoll.engines import registry
from atoll.engines.api import ProfiledEngine
from atoll.engines.calls import graph_in
from atoll.errors import UsageError
from atoll.host.api import Host
from atoll.operators import sections
from atoll.operators.mix import at_rate, mixed
from atoll.runtime import read_profile
from atoll.schema.operator_graph import OperatorGraph
from atoll.store.operator_files import read_graph

RUNTIME, OWN_FILES = "runtime", "file"  # sources that are not engines


def read_mix(
    source: str,
    files: Sequence[str],
    rates: Mapping[str, float],
    every_rate: float | None,
) -> OperatorGraph:
    """The documents, each at its rate, as one graph.

    A document's name is its file's, without folder and suffix. `rates` are by name, `every_rate` is
    for all others; without either, a document keeps the rate of its own. Raises UsageError.
    """
    graphs: dict[str, OperatorGraph] = {}
    for path in files:
        name = Path(path).stem
        if name in graphs:
            raise UsageError(f"{path}: another file is called {name}, too; rename one of them")
        graph = _graph(source, path)
        rate = rates.get(name, every_rate)
        if rate is None:
            note = _own_rate(graph, source)
        else:
            try:
                graph = at_rate(graph, rate)
            except UsageError as fault:
                raise UsageError(f"{path}: {fault}") from None
            note = "given"
        if note and graph.rate is not None:
            line = f"{name}: {graph.rate.value:.4g} {graph.rate.unit} ({note})"
            graph = graph.model_copy(update={"notes": (line, *graph.notes)})
        graphs[name] = graph
    if unknown := sorted(rates.keys() - graphs.keys()):
        raise UsageError(
            f"--rate {unknown[0]}: no file has that name; there are {', '.join(graphs)}"
        )
    return mixed(graphs)


def _own_rate(graph: OperatorGraph, source: str) -> str:
    if source in (RUNTIME, OWN_FILES) or graph.seconds is None:
        return ""
    return f"one after another, {graph.seconds:.3g} s each"


def _graph(source: str, path: str) -> OperatorGraph:
    if source == OWN_FILES:
        return read_graph(path)
    if source == RUNTIME:
        return sections.graph_of(read_profile(path), where=path)
    if source in registry.placeable_names() and source not in registry.names():
        raise UsageError(
            f"Atoll reads no document of {source}; watch it while it runs, with --url, or give a "
            f"graph of its with: atoll operators profile {OWN_FILES} FILE"
        )
    if source not in registry.names():
        known = sorted({*registry.names(), *registry.placeable_names(), RUNTIME, OWN_FILES})
        raise UsageError(f"{source!r} is not a source of graphs; known are: {', '.join(known)}")
    engine = registry.get(source)
    if not isinstance(engine, ProfiledEngine):
        raise UsageError(
            f"Atoll reads no profile of {source}; write a graph by hand (docs/formats, "
            f"atoll/operators) and give it with: atoll operators profile {OWN_FILES} FILE"
        )
    try:
        return graph_in(engine, Path(path).read_bytes())
    except OSError as fault:
        raise UsageError(f"{path}: cannot be read ({fault.strerror})") from None
    except ValueError as fault:
        raise UsageError(f"{path}: {fault}") from None


def watch_program(
    host: Host, source: str, url: str, seconds: float, say: Callable[[str], None]
) -> OperatorGraph:
    """The graph of a program that somebody else has started. Raises UsageError, EngineFailed."""
    with registry.get_attachable(source).attach(host, url) as running:
        say(f"watching {source} for {seconds:g} s")
        return running.profile(seconds)
