"""How requests travel to a Trino or Presto: until a deadline, under the server's header names."""

from __future__ import annotations

import time
from typing import Any

import requests
from requests.adapters import HTTPAdapter


class Wire(HTTPAdapter):
    """Of one client. A request that cannot be answered before `deadline` (of time.monotonic) is not
    sent; a password only by https. Raises requests.Timeout and requests.ConnectionError."""

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
