"""pgbench as the driver: how it is started, and what its log says.

Its log has a line for each transaction (PostgreSQL's manual, pgbench, Per-Transaction Logging):
client, number, latency in us or 'failed', script, and when it ended in seconds and us.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from atoll.engines.api import Data, Installation, Progress
from atoll.engines.postgresql.oltp.workloads import Workload
from atoll.engines.postgresql.settings import SUPERUSER
from atoll.engines.server.per_slot import ServerPerSlot, environment
from atoll.engines.transactions import Condition, Drive, Log
from atoll.errors import EngineFailed
from atoll.host.api import Host
from atoll.host.caller import clean_environment

_LOG = "log"
_FAILED = " failed "
_SOCKET_NAME = ".s.PGSQL."


@dataclass(frozen=True, slots=True)
class PgbenchTransactions:
    """See `atoll.engines.transactions.Transactions`."""

    engine: ServerPerSlot
    work: Workload

    @property
    def size(self) -> int:
        return self.work.size

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(self.work.weights)

    @property
    def database_bytes(self) -> int:
        return self.work.database_bytes

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return self.work.conditions

    @property
    def counted(self) -> tuple[str, str]:
        return self.work.counted

    @property
    def data(self) -> Data:
        from atoll.engines.postgresql.oltp.load import data_of

        return data_of(self.work)

    def load(self, installation: Installation, *, host: Host, progress: Progress) -> None:
        from atoll.engines.postgresql.oltp.load import load

        load(self.work, self.engine, installation, host=host, progress=progress)

    def drive(
        self, installation: Installation, endpoint: str, *, clients: int, seconds: int, seed: int
    ) -> Drive:
        program = f"{installation.home}/pgbench"
        if not os.access(program, os.X_OK):
            major = installation.version.partition(".")[0]
            raise EngineFailed(
                f"{program} is missing, which sends the transactions; install Debian's and "
                f"Ubuntu's package postgresql-{major}, Fedora's postgresql-contrib"
            )
        folder, name = os.path.split(endpoint)
        argv = [program, "-h", folder, "-p", name.removeprefix(_SOCKET_NAME), "-U", SUPERUSER]
        argv += ["--no-vacuum", "--protocol=prepared", f"--client={clients}", f"--jobs={clients}"]
        argv += [f"--time={seconds}", f"--random-seed={seed}", "--log", f"--log-prefix={_LOG}"]
        argv += [f"--define={name}={value!r}" for name, value in self.work.variables.items()]
        argv += [f"--file={name}@{weight}" for name, weight in self.work.weights.items()]
        return Drive(
            (*argv, "postgres"),
            {**clean_environment(), **environment(installation.home)},
            self.work.scripts,
        )

    def read(self, files: Mapping[str, str]) -> Log:
        lines = [
            line
            for name, text in files.items()
            if name.startswith(f"{_LOG}.")
            for line in text[: text.rfind("\n") + 1].splitlines()
        ]
        ended = [line for line in lines if _FAILED not in line]
        table = np.loadtxt(ended, usecols=range(6), ndmin=2) if ended else np.empty((0, 6))
        return Log(
            types=table[:, 3].astype(np.int64),
            ended_s=table[:, 4] + table[:, 5] / 1e6,
            latency_ms=table[:, 2] / 1000,
            failed=len(lines) - len(ended),
        )
