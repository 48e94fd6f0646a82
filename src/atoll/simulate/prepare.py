"""Fetches and makes what a guest cannot: it has no network, and what it writes is gone."""

from __future__ import annotations

from collections.abc import Sequence

from atoll.engines import registry
from atoll.engines.api import LoadingEngine, Progress
from atoll.engines.calls import located
from atoll.host.api import Host
from atoll.store.plan_file import is_plan_file, read_plan
from atoll.suites import registry as suites


def prepare(
    targets: Sequence[str],
    suite: str,
    scale_factor: float | None,
    *,
    host: Host,
    progress: Progress,
) -> None:
    """The suite's data, and its tables in engines that load them, in this machine's cache.

    Raises UsageError, EngineFailed (not installed) or DownloadFailed (no data).
    """
    names = {read_plan(one).engine if is_plan_file(one) else one for one in targets}
    engines = {name: registry.get(name) for name in sorted(names)}
    installations = {name: located(engine, host) for name, engine in engines.items()}
    size = 1.0 if scale_factor is None else scale_factor  # data of the user's own has none
    data = suites.get(suite).ensure_data(size, host=host, progress=progress).data
    for name, engine in engines.items():
        if isinstance(engine, LoadingEngine):
            engine.load(data, installations[name], host=host, progress=progress)
