"""`python -m tests.parts.oltp_run SECONDS OUTPUT`: measures TPC-C on a hundredth of a warehouse,
says what it does, and ends as `atoll oltp run` does. Its data loads in seconds."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from atoll.bench.runner import WrongAnswer
from atoll.engines.postgresql.engine import PostgreSQLEngine
from atoll.engines.postgresql.oltp.pgbench import PgbenchTransactions
from atoll.engines.postgresql.oltp.workloads import tpcc
from atoll.engines.transactions import Transactions
from atoll.errors import AtollError
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.oltp.measure import Measurement
from atoll.oltp.prepare import prepare
from atoll.supervise.interrupts import terminate_is_interrupt

SHRINK = 100  # 1,000 items; 30 customers and orders in each of 10 districts


@dataclass(frozen=True, slots=True)
class SmallEngine(PostgreSQLEngine):
    def transactions(self, workload: str, size: int) -> Transactions:
        return PgbenchTransactions(self, tpcc(size, shrink=SHRINK))


def main(seconds: int, output: Path) -> None:
    host, machine = LocalHost(), read_machine(None, None)
    with terminate_is_interrupt():
        setup = prepare(
            host,
            machine,
            SmallEngine(),
            {"tpcc": 1},
            [len(machine.allowed_cores)],
            warmup_s=1,
            measured_s=seconds,
            blocks=1,
            progress=lambda doing, share: None,
        )
        measurement = Measurement(
            host, machine, setup, lambda line: print(line, flush=True), longest_wait_s=0
        )
        measurement.run(lambda found: print(output.write_text(found.model_dump_json())))


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]), Path(sys.argv[2]))
    except WrongAnswer as wrong:
        print(wrong, wrong.detail, sep="\n")
        sys.exit(wrong.exit_code)
    except AtollError as fault:
        print(fault)
        sys.exit(fault.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
