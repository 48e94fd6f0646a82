"""What must hold of the data of a workload after a run, and after a recovery."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from atoll.bench.runner import WrongAnswer
from atoll.engines.api import Client
from atoll.engines.transactions import Condition
from atoll.schema.oltp import ConditionFound
from atoll.schema.text import first_of, plural
from atoll.supervise.client_calls import within

ACKNOWLEDGED = "acknowledged"
_CHECK_S = 3600.0  # the limit of a condition: of a large database it reads tens of gigabytes


@dataclass(frozen=True, slots=True)
class Checks:
    conditions: tuple[Condition, ...]
    counted: tuple[str, str]  # see `Transactions.counted`
    where: str  # for messages

    def of(
        self, client: Client, acknowledged: int, *, exact: bool
    ) -> tuple[int, tuple[ConditionFound, ...]]:
        """How many transactions of the type that is counted the database has, and the conditions,
        with one more: it has those that the driver had an answer to.

        `exact`: no transaction was cut off, so it has no others. Raises WrongAnswer if a condition
        does not hold, EngineFailed.
        """
        found = []
        for one in self.conditions:
            rows = _rows(client, one.sql)
            found.append(
                ConditionFound(
                    name=one.name,
                    means=one.means,
                    violations=len(rows),
                    example=", ".join(map(str, rows[0])) if rows else "",
                )
            )
        kind, sql = self.counted
        ((count,),) = _rows(client, sql)
        lost = acknowledged - int(count)
        found.append(
            ConditionFound(
                name=ACKNOWLEDGED,
                means=f"the database has every {kind} that was acknowledged"
                + (", and no other" if exact else ""),
                violations=abs(lost) if exact else max(lost, 0),
                example=f"{acknowledged} acknowledged, {count} there",
            )
        )
        if wrong := [one for one in found if one.violations]:
            lines = "\n".join(
                f"  {one.name}: {one.means}: {plural(one.violations, 'violation')}, first "
                f"{one.example}"
                for one in wrong
            )
            names = first_of([one.name for one in wrong], 6)
            raise WrongAnswer(f"{self.where}: violated conditions: {names}", lines)
        return int(count), tuple(found)


def _rows(client: Client, sql: str) -> list[tuple[Any, ...]]:
    ask = partial(client.execute, sql, timeout_s=_CHECK_S)
    return within(_CHECK_S, "checking the data", ask).rows
