"""Asks a coordinator, over its REST interface, what it counted of queries.

Every fault is an EngineFailed of one line.
"""

from __future__ import annotations

import time
from collections.abc import Collection
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


def works(
    http: requests.Session, where: str, user: str, known: Collection[str]
) -> dict[str, EngineWork]:
    """The counts of the queries that the coordinator still keeps and that are not `known`, by their
    ids. Waits for the last ones of several streams: from the latest back to one that was final."""
    found = _works(http, where, user)
    new, end, waited = sorted(found.keys() - known), time.monotonic() + _FINAL_S, False
    while new and not _final(http, where, user, new[-1], end)[1]:
        waited = True
        new.pop()
    found = _works(http, where, user) if waited else found
    return {ticket: work for ticket, work in found.items() if ticket not in known}


def operators(http: requests.Session, where: str, user: str, ticket: str) -> tuple[Operator, ...]:
    """The operators of a query that is over."""
    info, _ = _final(http, where, user, ticket, time.monotonic() + _FINAL_S)
    try:
        return operators_of(info)
    except ValueError as fault:
        raise _unreadable(_of_query(where, ticket), fault) from None


def _works(http: requests.Session, where: str, user: str) -> dict[str, EngineWork]:
    try:
        return works_of(_get(http, f"{where}/v1/query", user))
    except ValueError as fault:
        raise _unreadable(f"{where}/v1/query", fault) from None


def _final(
    http: requests.Session, where: str, user: str, ticket: str, end: float
) -> tuple[Any, bool]:
    """What the coordinator has of a query once that is final, by `end` at the latest, and whether
    it was final at once."""
    at_once = True
    while True:
        info = _get(http, _of_query(where, ticket), user)
        is_final = not isinstance(info, dict) or info.get("finalQueryInfo", True)
        if is_final or time.monotonic() > end:
            return info, at_once
        at_once = False
        time.sleep(_AGAIN_S)


def _of_query(where: str, ticket: str) -> str:
    return f"{where}/v1/query/{ticket}"


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
