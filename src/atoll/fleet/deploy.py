"""Starts a deployment on every host of a fleet, and ends it again.

A fleet is up on all of its hosts or on none: if one fails to start, the others are ended. What may
run on a host that cannot be reached stays in the record until `down` has reached that host.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Awaitable, Mapping, Sequence

from pydantic import BaseModel, TypeAdapter, ValidationError

from atoll.errors import CheckFailed, UsageError
from atoll.fleet import state
from atoll.fleet.asking import Task, Tell, ask_all
from atoll.fleet.connection import HostLost
from atoll.fleet.looking import look_at
from atoll.fleet.protocol import FILE, SECRET, Reply
from atoll.schema.fleet import Fleet, Reach
from atoll.schema.fleet_answers import HostAnswer
from atoll.schema.plan import Plan

# A random word follows, and both are the name of a deployment.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,22}")


def up(
    name: str,
    hosts: Sequence[Reach],
    what: str | Mapping[str, Plan],
    options: Sequence[str],
    tell: Tell,
) -> tuple[HostAnswer, ...]:
    """Start an engine (its name, planned on each host), or a plan for each host's name.

    Raises UsageError if the name cannot be used or plans are not all parts of a cluster; everything
    else is in the answers.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot name a fleet: use up to 23 letters, digits, '.', '_' or '-'"
        )
    # The head is ready when all instances have joined, so all hosts start at the same time.
    secret = secrets.token_hex(32) if _spans(what) else None
    joining = ("--secret", SECRET) if secret else ()
    failed = asyncio.Event()
    with state.held(name):
        if name in state.names():
            raise UsageError(
                f"fleet {name!r} is up, or was not ended everywhere; run: atoll fleet down {name}"
            )
        fleet = Fleet(
            name=name,
            deployment=f"{name}-{secrets.token_hex(4)}",
            created_unix_s=time.time(),
            hosts=tuple(hosts),
        )
        reached: set[str] = set()

        async def start(task: Task) -> None:
            host = task.link.reach.name
            reached.add(host)
            plan = None if isinstance(what, str) else what[host].model_dump_json()
            subject = what if isinstance(what, str) else FILE
            argv = ("up", subject, *options, *joining, "--name", fleet.deployment, "-d")
            begun = task.start(fleet.deployment, *argv, document=plan, secret=secret)
            await (_with_others(begun, failed) if secret else begun)
            await look_at(task, fleet.deployment)

        state.write(fleet)
        try:
            answers = ask_all(hosts, "starting", start, tell, failed.set)
        except BaseException as end:
            left = _undone(fleet, reached, tell)
            if isinstance(end, KeyboardInterrupt) and any(one.exit_code for one in left):
                names = ", ".join(one.host for one in left if one.exit_code)
                raise KeyboardInterrupt(f"{names} cannot be reached; {_later(name)}") from None
            raise
        if not any(answer.exit_code for answer in answers):
            return answers
        ended = {one.host: one for one in _undone(fleet, reached, tell)}
        return tuple(_after_end(answer, ended.get(answer.host), name) for answer in answers)


async def _with_others(begun: Awaitable[None], failed: asyncio.Event) -> None:
    """Wait for a host's part of a cluster, which cannot become ready once another one has failed.
    Hanging up ends it."""
    own, others = asyncio.ensure_future(begun), asyncio.ensure_future(failed.wait())
    try:
        await asyncio.wait({own, others}, return_when=asyncio.FIRST_COMPLETED)
        if not own.done():
            raise CheckFailed("was stopped, because another host of the cluster failed")
        await own
    finally:
        own.cancel()
        others.cancel()
        await asyncio.gather(own, others, return_exceptions=True)


def _spans(what: str | Mapping[str, Plan]) -> bool:
    """Whether these plans are a cluster. Raises UsageError if only some of a cluster are there."""
    plans = [] if isinstance(what, str) else list(what.values())
    clusters = [plan.cluster for plan in plans if plan.cluster]
    if not clusters:
        return False
    alike = {one.model_copy(update={"leads": True}) for one in clusters}
    leaders = sum(one.leads for one in clusters)
    if {len(plans), clusters[0].machines} != {len(clusters)} or len(alike) > 1 or leaders != 1:
        raise UsageError(
            "these plans are not those of one whole cluster; plan again with --cluster"
        )
    return True


def _undone(fleet: Fleet, reached: set[str], tell: Tell) -> tuple[HostAnswer, ...]:
    """End the hosts that were connected; on the others nothing can have been started."""
    hosts = tuple(host for host in fleet.hosts if host.name in reached)
    try:
        return _end(fleet.model_copy(update={"hosts": hosts}), tell)
    except KeyboardInterrupt:
        again = f"something may still run; run: atoll fleet down {fleet.name}"
        raise KeyboardInterrupt(again) from None


def _after_end(answer: HostAnswer, end: HostAnswer | None, name: str) -> HostAnswer:
    """What `up` answers for a host of a fleet that another host, or this one, has failed."""
    answer = answer.model_copy(update={"facts": {"state": "ended"} if end else {}})
    if end is None or not end.exit_code:
        return answer
    why = answer.error or f"was started, and cannot be ended ({end.error})"
    wrong = {"exit_code": end.exit_code, "error": f"{why}; {_later(name)}"}
    return answer.model_copy(update={**wrong, "facts": {"state": "unknown"}})


def _later(name: str) -> str:
    return f"something may run there: when it is back, run 'atoll fleet down {name}'"


def down(fleet: Fleet, tell: Tell, *, forget: bool) -> tuple[HostAnswer, ...]:
    """End the deployment on every host. `forget`: drop hosts that do not answer."""
    with state.held(fleet.name):
        return _end(state.find(fleet.name), tell, forget=forget)


def _end(fleet: Fleet, tell: Tell, *, forget: bool = False) -> tuple[HostAnswer, ...]:
    async def stop(task: Task) -> None:
        reply = await task.run("down", fleet.deployment, also=(UsageError.exit_code,))
        if reply.exit_code and fleet.deployment in _deployments(await task.run("ps", "--json")):
            task.take(reply)  # it is not that there is none
        task.facts["state"] = "was not up" if reply.exit_code else "down"

    answers = ask_all(fleet.hosts, "stopping", stop, tell)
    # A clock came only from a host whose Atoll answers: what it could not end is not forgotten.
    left = tuple(
        host
        for host, answer in zip(fleet.hosts, answers, strict=True)
        if answer.exit_code and not (forget and answer.clock is None)
    )
    if left:
        state.write(fleet.model_copy(update={"hosts": left}))
    else:
        state.forget(fleet.name)
    return answers


class _Listed(BaseModel):
    name: str


_LIST = TypeAdapter(list[_Listed])


def _deployments(reply: Reply) -> set[str]:
    try:
        return {listed.name for listed in _LIST.validate_json(reply.stdout)}
    except ValidationError:
        raise HostLost("'atoll ps --json' printed there what is no list of deployments") from None
