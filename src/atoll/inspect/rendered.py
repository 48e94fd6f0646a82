"""Checks the processes of a rendered deployment against its plan (`atoll verify --rendered`).

They run without Atoll, so no supervisor knows them. The rendered scripts and units start each one
with two marks in its environment. Its children belong to it, also those that have overwritten
their environment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from atoll.errors import EngineFailed
from atoll.host.api import Host
from atoll.host.procfs import Stat
from atoll.inspect.processes import MARK, PROCESS_MARK, descendants, environment, process_table
from atoll.inspect.verify import Subject, Verification, look
from atoll.schema.deployment import ProcessRecord
from atoll.schema.inspection import Finding, Severity
from atoll.schema.plan import Plan
from atoll.schema.rendered import Rendered

FIRST_PID = 1


def verify_rendered(
    host: Host, rendered: Rendered, plan: Plan, *, interval_s: float = 1.0
) -> Verification:
    """Inspects everything once. Raises EngineFailed if no process runs that this user may see."""
    records = [ProcessRecord(spec=spec, log="") for spec in rendered.processes]
    origins = attribute_rendered(host, rendered.mark, records, process_table(host))
    if not origins:
        others = "" if host.user_id() == 0 else ", or they belong to another user: run as root"
        raise EngineFailed(
            f"{rendered.name}: none of its processes runs{others}; its README.md says how to "
            "start them"
        )
    running = {record.spec.name for record in origins.values()}
    subject = Subject(
        name=rendered.name,
        plan=plan,
        processes=tuple(records),
        origins=origins,
        # A process without a mask has that of systemd, or of the shell that started it.
        everything=host.affinity(FIRST_PID),
        missing=tuple(
            not_running(record.spec.name) for record in records if record.spec.name not in running
        ),
    )
    return look(host, subject, deep=True, interval_s=interval_s)


def attribute_rendered(
    host: Host,
    mark: str,
    records: Sequence[ProcessRecord],
    table: Mapping[int, Stat],
    strangers: set[int] | None = None,
) -> dict[int, ProcessRecord]:
    """Each living process of the deployment, with the planned process that it comes from.

    `strangers`, given again at the next call: processes without the mark, whose environments are
    then not read again.
    """
    by_name = {record.spec.name: record for record in records}
    origins: dict[int, ProcessRecord] = {}
    for process in descendants(table, 0):  # parents come first
        origin = origins.get(table[process.pid].parent)
        if strangers is None or process.pid not in strangers:
            variables = environment(host, process.pid)
            if variables.get(MARK) == mark:
                origin = origin or by_name.get(variables.get(PROCESS_MARK, ""))
            elif strangers is not None:
                strangers.add(process.pid)
        if origin is not None:
            origins[process.pid] = origin
    return origins


def not_running(name: str) -> Finding:
    """The finding for a planned process that does not run."""
    return Finding(
        code="process-missing",
        severity=Severity.DRIFT,
        process=name,
        pid=0,
        expected="running",
        found="not running",
        cause="it was not started, or it ended; systemd's journal or its terminal says why",
        remedy="start it as README.md in the rendered folder says",
    )
