"""A client of one Trino or Presto coordinator, on the Python package `trino`.

Presto answers the same protocol, with headers of another name. Every fault is an EngineFailed of
one line, without a password. After a query past its limit, or a lost server, the client cancels the
query if the server still listens, and stays closed. The limit also holds if the server no longer
answers anything.
"""

from __future__ import annotations

import contextlib
import datetime
import getpass
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import requests
from requests.adapters import HTTPAdapter
from trino.client import ClientSession, TrinoQuery, TrinoRequest
from trino.exceptions import Error, HttpError, TrinoConnectionError, TrinoQueryError

from atoll.engines.api import Client, Column, QueryResult
from atoll.engines.sql.connections import connect_each
from atoll.engines.sql.endings import QueryEnd
from atoll.engines.sql.types import Kind, column_from_json, kind_of
from atoll.engines.trino import detector as trino_detector
from atoll.engines.trino import told
from atoll.engines.trino.facts import TRINO_FACTS
from atoll.engines.trino.told import reason
from atoll.errors import EngineFailed, UsageError
from atoll.host.caller import user_id
from atoll.schema.operators import QueryProfile
from atoll.schema.results import EngineWork
from atoll.schema.text import first_line

_CANCEL_LIMIT_S = 1.0
_DETECTOR_LIMIT_S = 1.0  # for both its answers; a count does without them
_TRUSTED = "REQUESTS_CA_BUNDLE"  # requests' own variable
_ACTIVE = "select http_uri from system.runtime.nodes where not coordinator and state = 'active'"

# ---- where a coordinator is ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Address:
    """A coordinator, with the user, the catalog and the schema of the session."""

    scheme: str
    host: str
    port: int
    user: str
    password: str = ""
    catalog: str | None = None
    schema: str | None = None

    @property
    def place(self) -> str:
        """The URL without the user and the password, for messages."""
        return f"{self.scheme}://{self.host}:{self.port}"


def parse_url(url: str) -> Address:
    """Reads http(s)://[user[:password]@]host[:port][/catalog[/schema]].

    Raises UsageError, which does not repeat the URL: it may contain a password.
    """
    form = "give http(s)://[user[:password]@]host[:port][/catalog[/schema]]"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        # Its message would repeat a password with a '#' or a '/' in it, as the port.
        raise UsageError(f"the URL cannot be read; {form}") from None
    if parts.query:
        raise UsageError(f"the URL has a '?', and no parameter is known; {form}")
    names = [unquote(name) for name in parts.path.split("/") if name]
    if parts.scheme not in TRINO_FACTS.ports or not parts.hostname or len(names) > 2:
        raise UsageError(f"not a Trino or Presto URL; {form}")
    if parts.password and parts.scheme == "http":
        raise UsageError("a password is sent over https only; give an https URL")
    return Address(
        scheme=parts.scheme,
        host=f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname,
        port=port or TRINO_FACTS.ports[parts.scheme],
        user=unquote(parts.username or "") or _own_name(),
        password=unquote(parts.password or ""),
        catalog=names[0] if names else None,
        schema=names[1] if len(names) > 1 else None,
    )


def _own_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(user_id())  # a container's user may have no name


def parse_endpoint(endpoint: str) -> Address:
    """Reads an endpoint of a layout: a URL, with `?user-file=PATH` for a user that is secret."""
    url, _, query = endpoint.partition("?")
    address = parse_url(url)
    for path in parse_qs(query).get("user-file", ()):
        try:
            user = Path(path).read_text()
        except OSError as fault:
            raise EngineFailed(f"{path} cannot be read ({fault.strerror})") from None
        return replace(address, user=user)
    return address


# ---- how requests travel -------------------------------------------------------------------------


class Wire(HTTPAdapter):
    """Sends the requests of one client until a deadline, with the server's header names.

    A request past `deadline` (of time.monotonic) is not sent, and a password is sent over https
    only. Raises requests.Timeout and requests.ConnectionError.
    """

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
            raise requests.ConnectionError("the server asks for the password over http")
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


# ---- the client ----------------------------------------------------------------------------------


class TrinoClient(QueryEnd):
    """See `atoll.engines.api.Client`. Not for use by several threads at once.

    `own`: the coordinator is Atoll's, on loopback, and requests go through no proxy. In any other
    cluster the client counts the workers and does not ask whether they will stay.
    """

    server = "server"

    def __init__(self, address: Address, *, header: str = "Trino", own: bool = False) -> None:
        self.settles_s = 0.0  # see `atoll.engines.api.SettlingClient`
        self._asks_detector = own
        self._address = address
        self.where = address.place
        self._closed = self._answered = False
        self._counted: set[str] = set()  # the queries that `work` has returned
        self._out: TrinoQuery | None = None  # the query that has no answer yet
        self._wire = Wire(header, password=bool(address.password))
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
            max_attempts=1,  # a time that includes a repetition is not a measurement
        )

    def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
        # Values as they travel; Atoll converts them by the same rules for every engine.
        self._out = query = TrinoQuery(self._request, sql, legacy_primitive_types=True)
        self._wire.deadline = time.monotonic() + timeout_s
        if self._closed:  # tested after setting `_out`, which close() in another thread cancels
            self._out = None
            raise self.closed()
        with self.asking(timeout_s):
            try:
                started = time.perf_counter()
                rows = list(query.execute())
                described = query.columns or []
                columns = tuple(Column(each["name"], each["type"].lower()) for each in described)
                kinds = [kind_of(column.type) for column in columns]
                values = _plain(rows, kinds)
                seconds = time.perf_counter() - started
            except (TrinoConnectionError, requests.RequestException):
                if self._wire.is_late:
                    raise TimeoutError from None
                raise
            finally:
                self._out = query  # close() in another thread may have come too early to cancel it
        self._out, self._answered = None, True
        if query.cancelled:  # by close() in another thread; the rows end there
            raise self.closed()
        return QueryResult(columns, values, seconds, query.query_id or "")

    def work(self, *, timeout_s: float) -> dict[str, EngineWork]:
        """See `atoll.engines.api.CountingClient`. The coordinator keeps a query for 15 minutes, and
        the last 100 for longer."""
        self._wire.deadline = time.monotonic() + timeout_s
        new = told.works(self._http, self.where, self._address.user, self._counted)
        self._counted |= new.keys()
        return new

    def profile(self, sql: str, *, timeout_s: float) -> QueryProfile:
        """See `atoll.engines.api.ProfilingClient`."""
        ticket = self.execute(sql, timeout_s=timeout_s).ticket
        self._wire.deadline = time.monotonic() + timeout_s
        found = told.operators(self._http, self.where, self._address.user, ticket)
        return QueryProfile(operators=found)

    @property
    def is_closed(self) -> bool:
        return self._closed

    def explain(self, fault: Exception) -> EngineFailed | None:
        """See `QueryEnd`. The client stays open only if the server refused the query."""
        if isinstance(fault, TrinoQueryError):
            self._out = None
            return EngineFailed(first_line(fault.message))
        self.close()
        if isinstance(fault, TrinoConnectionError | requests.RequestException):
            return self._unreached(reason(fault))
        if isinstance(fault, HttpError):
            return EngineFailed(f"{self.where}: {_refusal(fault)}")
        if isinstance(fault, Error | ValueError | ArithmeticError | KeyError | TypeError):
            return EngineFailed(
                f"{self.where} does not answer like Trino or Presto ({first_line(str(fault))})"
            )
        return None

    def instances(self, *, timeout_s: float) -> int:
        if self._closed or not self._asks_detector:
            return len(self.execute(_ACTIVE, timeout_s=timeout_s).rows)
        # Asked first: the list of nodes will not drop a worker that the detector trusts by then.
        self._wire.deadline = time.monotonic() + min(timeout_s, _DETECTOR_LIMIT_S)
        trusted = trino_detector.trusted(self._http, self.where, self._address.user)
        rows = self.execute(_ACTIVE, timeout_s=timeout_s).rows
        active = {urlsplit(str(row[0])).netloc for row in rows}
        self.settles_s = trino_detector.settles_s(active, trusted)
        return len(rows)

    def nodes(self, *, timeout_s: float) -> list[str]:
        """See `atoll.engines.api.ClusterClient`."""
        found = self.execute("select http_uri from system.runtime.nodes", timeout_s=timeout_s)
        return [str(row[0]) for row in found.rows]

    def greet(self, *, timeout_s: float) -> None:
        """Raises EngineFailed if the server does not answer or is still starting.

        This costs the server nothing, but a query during the start would make the start longer.
        """
        self._wire.deadline = time.monotonic() + timeout_s
        try:
            info = self._http.get(f"{self.where}/v1/info").json()
        except (requests.RequestException, ValueError) as fault:
            raise EngineFailed(f"no answer at {self.where} ({reason(fault)})") from None
        if not isinstance(info, dict) or info.get("starting") is not False:
            raise EngineFailed(f"the server at {self.where} is still starting")
        self._answered = True

    def _unreached(self, why: str) -> EngineFailed:
        if self._answered:
            return self.gone(why)
        if "CERTIFICATE_VERIFY_FAILED" in why:
            why += f"; set {_TRUSTED} to a file with the certificates that you trust"
            return EngineFailed(f"{self.where}: {why}")
        return EngineFailed(
            f"cannot reach Trino or Presto at {self.where} ({why}); check that it is running"
        )

    def close(self) -> None:
        """Cancels the query that has no answer yet, even if another thread waits for it."""
        self._closed = True  # first: `execute` tests it after setting `_out`
        query, self._out = self._out, None
        if query is not None:
            self._wire.deadline = time.monotonic() + _CANCEL_LIMIT_S
            with contextlib.suppress(Error, HttpError, requests.RequestException):
                query.cancel()
        self._http.close()


def connect_all(
    endpoints: Sequence[str], *, timeout_s: float, header: str = "Trino"
) -> list[Client]:
    """A client for each endpoint, in order. If one has no answer, closes those before it."""

    def connect(endpoint: str) -> Client:
        client = TrinoClient(parse_endpoint(endpoint), header=header, own=True)
        try:
            client.greet(timeout_s=timeout_s)
        except EngineFailed:
            client.close()
            raise
        return client

    return connect_each(endpoints, connect)


def reach(url: str, *, timeout_s: float, header: str = "Trino") -> Client:
    """A client of the cluster at `url`, after a first answer.

    The coordinator gives it alone. It sends `select 1` to a worker, which it may have lost.
    """
    client = TrinoClient(parse_url(url), header=header)
    try:
        client.instances(timeout_s=timeout_s)
    except EngineFailed:
        client.close()
        raise
    return client


def _plain(rows: list[Any], kinds: Sequence[Kind]) -> list[tuple[Any, ...]]:
    """The rows with Atoll's types, converted by column: value by value takes five times as long.

    Raises what `column_from_json` raises, and ValueError for rows of another length.
    """
    if not rows:
        return []
    travelled = zip(*rows, strict=True)
    columns = [_plain_column(*each) for each in zip(travelled, kinds, strict=True)]
    return list(zip(*columns, strict=True))


def _plain_column(values: Sequence[Any], kind: Kind) -> Sequence[Any]:
    if kind is Kind.DATE:
        # Always text; only in Atoll's own protocol are whole numbers dates.
        read = datetime.date.fromisoformat
        return [None if value is None else read(value) for value in values]
    if kind is not Kind.TEXT:
        return column_from_json(values, kind)
    if set(map(type, values)) <= {str, type(None)}:
        return values
    # Arrays, maps and rows.
    return [
        value if value is None or isinstance(value, str) else json.dumps(value) for value in values
    ]


def _refusal(fault: HttpError) -> str:
    """'error 401: Access Denied'. The client package has the bytes as Python prints them."""
    return re.sub(r"""^(error \d+: )b(['"])(.*)\2$""", r"\1\3", first_line(str(fault)))
