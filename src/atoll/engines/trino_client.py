"""A client of one Trino or Presto coordinator (the Python package `trino`); what `connect` gives.

Presto answers the same protocol, with headers of another name. Promises, as
`atoll.engines.sqlclient`: every fault is an EngineFailed of one line, without a password; after a
query past its limit, or a lost server, the query is cancelled where the server still listens, and
the client stays closed. The limit also holds against a server that answers nothing any more.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Sequence
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from trino.client import ClientSession, TrinoQuery, TrinoRequest
from trino.exceptions import Error, HttpError, TrinoConnectionError, TrinoQueryError

from atoll.engines.base import Client, Column, QueryResult
from atoll.engines.sqltypes import Kind, from_json, kind_of
from atoll.engines.trino_address import Address, parse_endpoint, parse_url
from atoll.errors import EngineFailed

_CANCEL_LIMIT_S = 1.0
_WORDS_CHARACTERS = 300
_INSTANCES = (
    "select count(*) from system.runtime.nodes where coordinator = false and state = 'active'"
)


class TrinoClient:
    """See `atoll.engines.base.Client`. Not for use by several threads at once.

    `own`: a coordinator of our own on loopback, to which no proxy leads.
    """

    def __init__(self, address: Address, *, header: str = "Trino", own: bool = False) -> None:
        self._address = address
        self._closed = False
        self._wire = _Wire(header, password=bool(address.password))
        self._http = requests.Session()
        self._http.trust_env = not own
        self._http.mount("http://", self._wire)
        self._http.mount("https://", self._wire)
        if address.password:
            self._http.auth = (address.user, address.password)
        self._request = TrinoRequest(
            host=address.host,
            port=address.port,
            http_scheme=address.scheme,
            http_session=self._http,
            client_session=ClientSession(
                user=address.user,
                catalog=address.catalog,
                schema=address.schema,
                source="atoll",
                timezone="UTC",
                headers={"X-Trino-Client-Info": "atoll"},
            ),
            max_attempts=1,  # a time with a repetition in it is no measurement
        )

    def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
        if self._closed:
            raise EngineFailed(f"the connection to {self._address.place} was closed")
        # Values as they travel: they become ours by the rules that hold for every engine.
        query = TrinoQuery(self._request, sql, legacy_primitive_types=True)
        self._wire.deadline = time.monotonic() + timeout_s
        try:
            started = time.perf_counter()
            rows = list(query.execute())
            described = query.columns or []
            columns = tuple(Column(each["name"], each["type"].lower()) for each in described)
            kinds = [kind_of(column.type) for column in columns]
            values = [tuple(map(_value, row, kinds)) for row in rows]
            seconds = time.perf_counter() - started
        except TrinoQueryError as fault:
            raise EngineFailed(_line(fault.message)) from None
        except (TrinoConnectionError, requests.RequestException) as fault:
            late = self._wire.is_late
            self._give_up(query)
            if late:
                raise EngineFailed(
                    f"no answer within {timeout_s:g} s; the query was cancelled"
                ) from None
            raise EngineFailed(
                f"the server at {self._address.place} is gone ({_reason(fault)}); see its log"
            ) from None
        except HttpError as fault:
            self._give_up(query)
            raise EngineFailed(f"{self._address.place}: {_line(str(fault))}") from None
        except (Error, ValueError, ArithmeticError, KeyError, TypeError) as fault:
            self._give_up(query)
            raise EngineFailed(
                f"{self._address.place} does not answer as a Trino or Presto does "
                f"({_line(str(fault))})"
            ) from None
        except BaseException:
            self._give_up(query)
            raise
        return QueryResult(columns, values, seconds)

    def instances(self, *, timeout_s: float) -> int:
        return int(self.execute(_INSTANCES, timeout_s=timeout_s).rows[0][0])

    def nodes(self, *, timeout_s: float) -> list[str]:
        """See `atoll.engines.base.ClusterClient`."""
        found = self.execute("select http_uri from system.runtime.nodes", timeout_s=timeout_s)
        return [str(row[0]) for row in found.rows]

    def greet(self, *, timeout_s: float) -> None:
        """Raises EngineFailed while the server is not there or still starting. Costs it nothing,
        while a query that is asked too early makes the start longer."""
        self._wire.deadline = time.monotonic() + timeout_s
        try:
            said = self._http.get(f"{self._address.place}/v1/info").json()
        except (requests.RequestException, ValueError) as fault:
            raise EngineFailed(f"no answer at {self._address.place} ({_reason(fault)})") from None
        if not isinstance(said, dict) or said.get("starting") is not False:
            raise EngineFailed(f"the server at {self._address.place} is still starting")

    def close(self) -> None:
        self._closed = True
        self._http.close()

    def _give_up(self, query: TrinoQuery) -> None:
        self._wire.deadline = time.monotonic() + _CANCEL_LIMIT_S
        with contextlib.suppress(Error, HttpError, requests.RequestException):
            query.cancel()
        self.close()


def connect_all(
    endpoints: Sequence[str], *, timeout_s: float, header: str = "Trino"
) -> list[Client]:
    """A client for each of a layout's endpoints, in order; none stays open if one has no answer."""
    clients: list[TrinoClient] = []
    try:
        for endpoint in endpoints:
            clients.append(TrinoClient(parse_endpoint(endpoint), header=header, own=True))
            clients[-1].greet(timeout_s=timeout_s)
    except EngineFailed:
        for each in clients:
            each.close()
        raise
    return list(clients)


def reach(url: str, *, timeout_s: float, header: str = "Trino") -> Client:
    """A client of the cluster at `url`, which has answered."""
    client = TrinoClient(parse_url(url), header=header)
    try:
        client.execute("select 1", timeout_s=timeout_s)
    except EngineFailed:
        client.close()
        raise
    return client


class _Wire(HTTPAdapter):
    """Sends requests within what is left of the query's time, under the server's header names."""

    def __init__(self, header: str, *, password: bool) -> None:
        super().__init__()
        self.deadline = 0.0
        self._header = f"X-{header}-"
        self._password = password

    @property
    def is_late(self) -> bool:
        return time.monotonic() >= self.deadline

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> requests.Response:
        if self.is_late:
            raise requests.Timeout
        if self._password and not (request.url or "").startswith("https://"):
            raise requests.ConnectionError("it wants the password sent over http")
        _rename(request.headers, "X-Trino-", self._header)
        left_s = self.deadline - time.monotonic()
        response = super().send(
            request, stream=stream, timeout=left_s, verify=verify, cert=cert, proxies=proxies
        )
        _rename(response.headers, self._header, "X-Trino-")
        return response


def _rename(headers: Any, old: str, new: str) -> None:
    if old != new:
        for name in [name for name in headers if name.lower().startswith(old.lower())]:
            headers[new + name[len(old) :]] = headers.pop(name)


def _value(value: Any, kind: Kind) -> Any:
    if kind is Kind.TEXT and value is not None and not isinstance(value, str):
        return json.dumps(value)  # arrays, maps and rows
    return from_json(value, kind)


def _line(text: str) -> str:
    return (text.strip().splitlines() or ["no word"])[0][:_WORDS_CHARACTERS]


def _reason(fault: BaseException) -> str:
    """The first cause: what wraps it tells objects' addresses too."""
    while inner := fault.__cause__ or fault.__context__:
        fault = inner
    return _line(getattr(fault, "strerror", None) or str(fault))
