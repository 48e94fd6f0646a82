"""Runs one `atoll-probe` process: typed requests and answers, with a limit on every wait.

No call outlasts its timeout by more than the time to kill a process. A probe that hangs, dies or
answers nonsense is ended at once and refuses further requests. `close` leaves no process behind.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from typing import Self

from pydantic import ValidationError

from atoll.errors import ProbeMissing
from atoll.host.api import Host
from atoll.host.programs import find_program
from atoll.probing.errors import ProbeDied, ProbeHung, ProbeRefused
from atoll.probing.requests import A_co, Hello, HelloAnswer, Request, Sampling
from atoll.schema.base import what_is_wrong

PROTOCOL_VERSION = 1
HELLO_TIMEOUT_S = 10.0


def find_probe() -> str:
    path = find_program("atoll-probe")
    if path is None:
        raise ProbeMissing("atoll-probe is not installed; run 'make setup' or reinstall atoll")
    return path


class Probe:
    """A started probe that has greeted. Raises ProbeMissing."""

    def __init__(
        self,
        host: Host,
        program: str,
        env: Mapping[str, str] | None = None,
        *,
        timeout_s: float = HELLO_TIMEOUT_S,
    ) -> None:
        # A clean locale, and none of the user's preloads: only `env` may change the environment.
        environment = {"LC_ALL": "C", **(env or {})}
        try:
            self._conversation = host.converse([program], env=environment)
        except OSError as fault:
            reason = fault.strerror or fault
            raise ProbeMissing(
                f"{program}: cannot be started ({reason}); reinstall atoll"
            ) from None
        self._failed = False
        try:
            self.hello: HelloAnswer = self.ask(
                Hello(), Sampling(settle=1.0, samples=3), most_s=0, timeout_s=timeout_s
            )
            if self.hello.version != PROTOCOL_VERSION:
                raise ProbeMissing(
                    f"{program}: uses protocol version {self.hello.version}, but this atoll uses "
                    f"version {PROTOCOL_VERSION}; reinstall atoll"
                )
        except (ProbeHung, ProbeDied, ProbeRefused) as fault:
            self.close()
            raise ProbeMissing(f"{program}: does not work ({fault}); reinstall atoll") from None
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        return self._conversation.pid

    @property
    def usable(self) -> bool:
        return not self._failed

    def ask(
        self, request: Request[A_co], sampling: Sampling, *, most_s: float, timeout_s: float
    ) -> A_co:
        """The answer. Raises ProbeRefused, ProbeHung, ProbeDied; after the last two the probe is
        gone."""
        self.post(request, sampling, most_s=most_s)
        return self.collect(request, timeout_s=timeout_s)

    def post(self, request: Request[A_co], sampling: Sampling, *, most_s: float) -> None:
        """Sends a request; the caller must `collect` its answer."""
        if self._failed:
            raise ProbeDied(f"{request.do}: the probe has already ended")
        try:
            self._conversation.send(json.dumps(request.fields(sampling, most_s=most_s)))
        except BrokenPipeError:
            raise self._died(request.do) from None

    def collect(self, request: Request[A_co], *, timeout_s: float) -> A_co:
        try:
            line = self._conversation.receive(timeout_s=timeout_s)
        except TimeoutError:
            self._give_up()
            raise ProbeHung(
                f"{request.do}: no answer within {timeout_s:.1f} s; killed the probe"
            ) from None
        except EOFError:
            raise self._died(request.do) from None
        return self._read(request, line)

    def close(self) -> None:
        self._failed = True
        self._conversation.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, request: Request[A_co], line: str) -> A_co:
        try:
            raw = json.loads(line)
            if raw["ok"] is True:
                return request.answer_type().model_validate(raw)
            if raw["ok"] is False:
                message = " ".join(str(raw["error"]).split())
                raise ProbeRefused(str(raw["code"]), f"{request.do}: {message}")
        except ValidationError as fault:
            reason = what_is_wrong(fault)
        except (ValueError, KeyError, TypeError, RecursionError):
            reason = "not an answer of its protocol"
        else:
            reason = "neither success nor refusal"
        self._give_up()
        raise ProbeDied(f"{request.do}: the probe sent an unreadable answer ({reason})")

    def _died(self, do: str) -> ProbeDied:
        status = self._give_up()
        words = " ".join(self._conversation.last_words().split())[-200:]
        return ProbeDied(f"{do}: the probe ended ({_ending(status)})" + (words and f": {words}"))

    def _give_up(self) -> int:
        self._failed = True
        return self._conversation.close()


def _ending(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"
