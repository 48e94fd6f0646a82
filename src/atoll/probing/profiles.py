"""Saves, reads and finds profiles, and applies their chiplets to machines that show none.

A profile lies in the state folder, in a file named by the machine's id, the host's hash and its
time. The names alone identify the profile of this machine, so that `atoll topo` starts fast.
Applying a profile reads only its inference, not the matrices.

A measurement ranks below what the topology shows and below what the user specifies
(schema.machine, ChipletSource). A profile is not used, and the reason is reported, if it is too
uncertain, was measured on a part of the cores or on an emulated CPU, or fails the checks of
`plan.chiplets`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from atoll.errors import AtollError, UsageError
from atoll.schema.confidence import LEAST_CONFIDENCE
from atoll.schema.machine import ChipletSource, Machine
from atoll.store.paths import state_dir, state_path

if TYPE_CHECKING:
    from atoll.host.api import Host
    from atoll.probing.profile_chiplets import ProfileChiplets
    from atoll.schema.profile import Profile

_FOLDER = "profiles"
_UNKNOWN = "unknown"  # if the host has no name
_MOST_LOOKED_AT = 8


class Applied(NamedTuple):
    machine: Machine
    report: str = ""  # for people: what was used, or why nothing was


def save(profile: Profile) -> Path:
    """Writes it to the state folder, readable only by its user. Raises as `write_atomic` does."""
    from atoll.store.files import write_atomic

    moment = "".join(filter(str.isdigit, profile.created))[:14]
    host = profile.environment.hostname_hash or _UNKNOWN
    path = state_dir(_FOLDER) / f"{profile.machine_id}-{host}-{moment}.json"
    write_atomic(path, profile.model_dump_json() + "\n", mode=0o600)
    return path


def read(path: str | Path) -> Profile:
    """Raises UsageError with a message of one line."""
    from atoll.schema.base import parse
    from atoll.schema.profile import Profile

    return parse(Profile, _bytes(path), where=str(path))


def saved(machine: Machine, host: Host | None = None) -> list[Path]:
    """The files of this machine's profiles, newest first."""
    folder = state_path(_FOLDER)
    if not os.path.isdir(folder):  # Path.is_dir raises if the folder is another user's
        return []
    here = _host_name(host) or _UNKNOWN
    return sorted(folder.glob(f"{machine.machine_id}-{here}-*.json"), reverse=True)


def find(machine: Machine, host: Host | None = None) -> Profile | None:
    """The newest profile of this machine. Raises UsageError if it cannot be read."""
    paths = saved(machine, host)
    return read(paths[0]) if paths else None


def use_saved(machine: Machine, host: Host | None = None) -> Applied:
    """This machine with the chiplets of its newest saved profile that contains any, if the topology
    shows none. Never raises: an unreadable profile is reported in the result."""
    if machine.chiplets:
        return Applied(machine)
    first = Applied(machine)
    for path in saved(machine, host)[:_MOST_LOOKED_AT]:
        try:
            measured = read_chiplets(path)
        except AtollError as fault:
            applied = Applied(machine, f"a saved profile is not used: {fault}")
        else:
            if measured.inference is None:
                continue  # measured other kinds only
            applied = apply(machine, measured, where=str(path))
            if _surely_none(machine, measured):
                return Applied(machine)
        if applied.machine is not machine:
            return applied
        first = first if first.report else applied
    return first


def use_given(machine: Machine, path: str, host: Host | None = None) -> Applied:
    """The machine with the chiplets of the profile that the user named.

    Raises UsageError if it cannot be read, or is of another machine or an emulated CPU.
    """
    measured = read_chiplets(path)
    if measured.machine_id != machine.machine_id:
        raise UsageError(
            f"{path}: was measured on another machine ({measured.machine_id}, "
            f"{measured.machine_title}), not on this one ({machine.machine_id}, {machine.title}); "
            "measure here with 'atoll measure'"
        )
    was, now = measured.environment.cpu_model, machine.cpu_model
    if was and now and was != now:
        raise UsageError(
            f"{path}: was measured on {was!r} ({measured.machine_id}), but this is {now!r} "
            f"({machine.machine_id}) of the same layout; measure here with 'atoll measure'"
        )
    if measured.emulated:
        raise UsageError(f"{path}: {_EMULATED}; measure on a real machine")
    applied = apply(machine, measured, where=path)
    here = machine.origin.kind == "live"
    if here and measured.environment.hostname_hash != _host_name(host):
        return Applied(
            applied.machine, f"{applied.report}; measured on another host of the same kind"
        )
    return applied


_EMULATED = "was measured on an emulated CPU, so its figures mean nothing"


def apply(machine: Machine, profile: ProfileChiplets | Profile, *, where: str) -> Applied:
    """The machine with the profile's chiplets, if it shows none itself and they are certain enough.

    The profile must be of this machine. `where` names the profile in the report. Never raises.
    """
    measured = chiplets_of(profile)
    named = f"the profile {where} of {measured.created[:10]}"
    inference = measured.inference
    if machine.chiplets:
        source = machine.chiplets[0].source.value
        return Applied(machine, f"{named} is not needed: the chiplets are already known ({source})")
    if measured.emulated:
        return Applied(machine, f"{named} is not used: it {_EMULATED}")
    if inference is None:
        return Applied(machine, f"{named} has no chiplets: no pairs of CPUs were measured")
    if unmeasured := _unmeasured(machine, measured):
        return Applied(
            machine,
            f"{named} is not used: {unmeasured} of {len(machine.allowed_cores)} cores were not "
            "paired; 'atoll measure --full' pairs all",
        )
    if not inference.chiplets:
        sure = inference.confidence >= LEAST_CONFIDENCE
        shown = "shows no chiplets" if sure else "cannot tell whether there are chiplets"
        return Applied(machine, f"{named} {shown} (confidence {inference.confidence:.2g})")
    if inference.confidence < LEAST_CONFIDENCE:
        return Applied(
            machine,
            f"{named} is not used: its chiplets are uncertain (confidence "
            f"{inference.confidence:.2g}, at least {LEAST_CONFIDENCE:g} is required)",
        )
    from atoll.plan.chiplets import assign_chiplets  # late: it imports all of planning

    by_bandwidth = inference.source == "bandwidth"
    try:
        with_chiplets = assign_chiplets(
            machine,
            inference.chiplets,
            ChipletSource.BANDWIDTH if by_bandwidth else ChipletSource.LATENCY,
        )
    except UsageError as fault:
        return Applied(machine, f"{named} is not used: {fault}")
    return Applied(
        with_chiplets,
        f"chiplets from {named} ({'bandwidth' if by_bandwidth else 'latency'}, confidence "
        f"{inference.confidence:.2g})",
    )


def chiplets_of(profile: ProfileChiplets | Profile) -> ProfileChiplets:
    from atoll.probing.profile_chiplets import ProfileChiplets

    if isinstance(profile, ProfileChiplets):
        return profile
    return ProfileChiplets.model_validate(profile, from_attributes=True)


def read_chiplets(path: str | Path) -> ProfileChiplets:
    """Raises UsageError with a message of one line."""
    from pydantic import ValidationError

    from atoll.probing.profile_chiplets import ProfileChiplets

    text = _bytes(path)
    try:
        return ProfileChiplets.model_validate_json(text)
    except ValidationError as fault:
        from atoll.schema.base import parse, what_is_wrong
        from atoll.schema.profile import Profile

        parse(Profile, text, where=str(path))  # reads all of it and reports what is wrong
        raise UsageError(f"{path}: {what_is_wrong(fault)}") from None


def _surely_none(machine: Machine, measured: ProfileChiplets) -> bool:
    """Whether it measured all cores and is certain that there are no chiplets. An older profile
    that shows some is then outdated."""
    inference = measured.inference
    return (
        inference is not None
        and not inference.chiplets
        and inference.confidence >= LEAST_CONFIDENCE
        and not measured.emulated
        and not _unmeasured(machine, measured)
    )


def _unmeasured(machine: Machine, measured: ProfileChiplets) -> int:
    """The number of usable cores of which no CPU was paired."""
    return sum(measured.pus.isdisjoint(core.pus) for core in machine.allowed_cores)


def _host_name(host: Host | None) -> str:
    from atoll.host.environment import hostname_hash
    from atoll.host.local import LocalHost

    return hostname_hash(host or LocalHost())


def _bytes(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as fault:
        raise UsageError(f"{path}: cannot be read ({fault.strerror})") from None
    except ValueError as fault:
        raise UsageError(f"{path!r}: is not a path ({fault})") from None
