"""Asks a coordinator, over its REST interface, what it counted of queries.

Every fault is an EngineFailed of one line.
"""

from __future__ import annotations

import time
from typing import Any

import requests

from atoll.engines.operators import reading
from atoll.engines.trino.query_info import operators_of, works_of
from atoll.errors import EngineFailed
from atoll.schema.operators import Operator
from atoll.schema.results import EngineWork
from atoll.schema.text import first_line

# A query is over before its last tasks have reported.
_FINAL_S = 3.0
_AGAIN_S = 0.05


def works(http: requests.Session, where: str, user: str) -> dict[str, EngineWork]:
    """The counts of all queries that the coordinator still keeps, by their ids."""
    try:
        return works_of(_get(http, f"{where}/v1/query", user))
    except ValueError as fault:
        raise _unreadable(f"{where}/v1/query", fault) from None


def operators(http: requests.Session, where: str, user: str, ticket: str) -> tuple[Operator, ...]:
    """The operators of a query that is over."""
    url, end = f"{where}/v1/query/{ticket}", time.monotonic() + _FINAL_S
    while True:
        info = _get(http, url, user)
        is_final = not isinstance(info, dict) or info.get("finalQueryInfo", True)
        if is_final or time.monotonic() > end:
            break
        time.sleep(_AGAIN_S)
    try:
        return operators_of(info)
    except ValueError as fault:
        raise _unreadable(url, fault) from None


def _get(http: requests.Session, url: str, user: str) -> Any:
    try:
        answer = http.get(url, headers={"X-Trino-User": user})
        answer.raise_for_status()
        with reading():
            return answer.json()
    except (requests.RequestException, ValueError) as fault:
        raise _unreadable(url, fault) from None


def _unreadable(url: str, fault: BaseException) -> EngineFailed:
    return EngineFailed(f"{url}: the answer cannot be read ({reason(fault)})")


def reason(fault: BaseException) -> str:
    """The first cause: the exceptions around it also print addresses of objects."""
    while inner := fault.__cause__ or fault.__context__:
        fault = inner
    return first_line(getattr(fault, "strerror", None) or str(fault))
