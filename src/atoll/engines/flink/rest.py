"""Asks a JobManager's REST interface. It only reads."""

from __future__ import annotations

import http.client
import re
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote, urlsplit

from atoll.engines.flink.documents import (
    Exceptions,
    Job,
    Metric,
    Overview,
    TaskManagers,
    _Document,
    read,
    read_metrics,
    refusal,
)
from atoll.errors import EngineFailed, ServerGone, UsageError
from atoll.schema.text import first_line

_TIMEOUT_S = 10.0
_MOST_BYTES = 64 << 20
_FORM = "give http(s)://HOST[:PORT], or that and /jobs/ID"
_HOST = re.compile(r"[\w.:%-]+")
_PORTS = {"http": 8081, "https": 443}

D = TypeVar("D", bound=_Document)


@dataclass(frozen=True, slots=True)
class Rest:
    scheme: str
    host: str
    port: int

    @classmethod
    def at(cls, url: str) -> Rest:
        """Raises UsageError."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise UsageError(f"the URL cannot be read; {_FORM}") from None
        is_host = _HOST.fullmatch(parts.hostname or "")
        if parts.scheme not in _PORTS or not is_host or parts.path.strip("/"):
            raise UsageError(f"not the URL of a Flink JobManager; {_FORM}")
        if parts.username or parts.password or parts.query:
            raise UsageError(f"Atoll knows no passwords of Flink; {_FORM}")
        return cls(parts.scheme, is_host[0], port or _PORTS[parts.scheme])

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def overview(self) -> Overview:
        return self._read(Overview, "/jobs/overview")

    def job(self, job: str) -> Job:
        return self._read(Job, f"/jobs/{quote(job, safe='')}")

    def task_managers(self) -> TaskManagers:
        return self._read(TaskManagers, "/taskmanagers")

    def exceptions(self, job: str) -> Exceptions:
        return self._read(Exceptions, f"/jobs/{quote(job, safe='')}/exceptions")

    def metrics(self, job: str, vertex: str, names: tuple[str, ...] = ()) -> tuple[Metric, ...]:
        """These metrics of a vertex; without names, what metrics it has, without values."""
        path = f"/jobs/{quote(job, safe='')}/vertices/{quote(vertex, safe='')}/metrics"
        if names:
            path += "?get=" + ",".join(quote(name, safe="") for name in names)
        return read_metrics(self._get(path), f"{self.url}{path}")

    def _read(self, kind: type[D], path: str) -> D:
        return read(kind, self._get(path), f"{self.url}{path}")

    def _get(self, path: str) -> bytes:
        """Raises ServerGone if nothing answers yet, EngineFailed for a refusal."""
        kind = http.client.HTTPSConnection if self.scheme == "https" else http.client.HTTPConnection
        connection = kind(self.host, self.port, timeout=_TIMEOUT_S)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            text = answer.read(_MOST_BYTES)
        except (OSError, http.client.HTTPException, UnicodeError) as fault:  # no name for DNS
            why = getattr(fault, "strerror", None) or str(fault) or type(fault).__name__
            raise ServerGone(f"{self.url}: no Flink JobManager answers ({why})") from None
        finally:
            connection.close()
        if answer.status != 200:
            said = first_line(refusal(text))
            error = ServerGone if answer.status == 503 else EngineFailed  # it starts
            raise error(f"{self.url}{path}: refused with status {answer.status}: {said}")
        return text
