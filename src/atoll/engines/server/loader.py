"""Loads a suite into a server once: a template data directory that the instances copy.

Tables are loaded in parallel, as many as there are CPUs.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from atoll.engines.api import Data, Installation, Progress, Table
from atoll.engines.explained import values
from atoll.engines.loading.server import Server, run_folder, started
from atoll.engines.loading.templates import (
    Meter,
    load_all,
    loaded_path,
    make_empty,
    make_loaded,
    parquet_bytes,
)
from atoll.engines.server.per_slot import ServerPerSlot, environment, template_path
from atoll.errors import EngineFailed
from atoll.host.api import Host
from atoll.store.files import write_atomic
from atoll.store.once import copy_tree

CONNECT_S = 60.0
_LOG = "atoll-load.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loader:
    """How one kind of server loads tables."""

    engine: ServerPerSlot
    settings: Mapping[str, str]  # of the server while it loads
    load_table: Callable[[str, Table, Meter], None]  # with the path of the server's socket
    finish: Callable[[str], None] | None = None  # once all tables are loaded
    # For a second start after the load, which makes the data smaller; empty: no second start.
    settings_after: Mapping[str, str] = field(default_factory=dict)
    stop: signal.Signals  # ends the server in order
    abort: signal.Signals = signal.SIGKILL  # ends it at once and leaves nothing behind
    empty_bytes: int  # of the empty template, its copy and the log
    bytes_per_parquet_byte: int  # of tables and indexes

    def load(
        self, data: Data, installation: Installation, *, host: Host, progress: Progress
    ) -> None:
        """Make the template of `data` next to the empty one, unless it exists."""

        def fill(server: Server, path: str) -> None:
            load_all(
                data,
                partial(self.load_table, path),
                host=host,
                server=server,
                progress=progress,
                finish=partial(self.finish, path) if self.finish else None,
            )

        needed_bytes = self.empty_bytes + self.bytes_per_parquet_byte * parquet_bytes(data)
        self.make(data, fill, needed_bytes, installation, host=host, progress=progress)

    def make(
        self,
        data: Data,
        fill: Callable[[Server, str], None],
        needed_bytes: int,
        installation: Installation,
        *,
        host: Host,
        progress: Progress,
    ) -> None:
        """As `load`; `fill` loads into the server, of which it gets the socket's path too."""
        empty, home = template_path(installation), installation.home

        def make(folder: Path) -> None:
            make_empty(empty, self.engine.settings.make_empty(home), environment(home), host)
            copy_tree(empty, str(folder))
            with self.server(home, folder, self.settings, host) as (server, path):
                fill(server, path)
                server.end(self.stop)
            if self.settings_after:
                after = {**self.settings, **self.settings_after}
                with self.server(home, folder, after, host) as (server, _):
                    server.end(self.stop)
            (folder / _LOG).unlink()

        make_loaded(
            Path(loaded_path(empty, data)),
            data,
            needed_bytes=needed_bytes,
            progress=progress,
            make=make,
        )

    @contextlib.contextmanager
    def server(
        self, home: str, folder: Path, settings: Mapping[str, str], host: Host
    ) -> Iterator[tuple[Server, str]]:
        """A server on that data directory, and the path of its socket."""
        module = self.engine.settings
        with run_folder(folder) as run:
            config = run / self.engine.config_name.format(0)
            location = values(module.location(0, data=str(folder), run_dir=str(run), home=home))
            files = module.shared_files() | {config.name: module.write({**location, **settings})}
            for name, text in files.items():
                write_atomic(run / name, text, mode=0o600)
            path = module.socket_path(str(run), 0)
            with started(
                f"{self.engine.title} that loads",
                (module.programs(home)[0], *module.arguments(str(config))),
                host=host,
                env=environment(home),
                log=folder / _LOG,
                abort=self.abort,
            ) as server:
                server.await_answer(lambda: self._answers(path))
                yield server, path

    def _answers(self, path: str) -> bool:
        try:
            self.engine.client(path, timeout_s=CONNECT_S).close()
        except EngineFailed:
            return False
        return True
