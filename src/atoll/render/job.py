"""What `atoll render` writes and shows: for which plan, account, folder and installation."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from atoll.engines import registry
from atoll.engines.api import Engine, Installation
from atoll.engines.calls import located
from atoll.engines.facts import facts_of
from atoll.engines.rendered import RenderedEngine, Rendering, Target
from atoll.engines.userconfig.apply import with_user_tree
from atoll.engines.userconfig.changes import changes
from atoll.engines.userconfig.summary import summary
from atoll.errors import EngineFailed, NotPermitted, UsageError
from atoll.host.api import Host
from atoll.host.caller import user_id
from atoll.install.parts import engines_dir
from atoll.plan import make_plan
from atoll.plan.capacity import check_room
from atoll.plan.network import Listen
from atoll.plan.request import Choices
from atoll.probing.allocators import library_of
from atoll.render.ansible import render_ansible
from atoll.render.compose import render_compose
from atoll.render.deployment import UnattendedDeployment, lay_out, slot_places
from atoll.render.explain import explain
from atoll.render.k8s import render_k8s
from atoll.render.native import render_native
from atoll.render.slurm import render_slurm
from atoll.render.systemd import render_systemd
from atoll.schema.machine import Machine
from atoll.schema.plan import EngineTraits, HugePages, Malloc, Plan
from atoll.supervise.records import check_name

FORMS: Mapping[str, Callable[[UnattendedDeployment], Rendering]] = {
    "native": render_native,
    "systemd": render_systemd,
    "compose": render_compose,
    "slurm": render_slurm,
    "k8s": render_k8s,
    "ansible": render_ansible,
}
_OF_IMAGES = ("compose", "k8s")
# Account names of shadow-utils and of directories (user@domain), or a uid other than root's.
_ACCOUNT = re.compile(r"[A-Za-z_][A-Za-z0-9_.@-]*|[1-9][0-9]*")
# A registry's host, a path, a tag and a digest. The runtime knows which of them it needs.
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*")


# The machine to plan for, and where its instances listen.
Ground = tuple[Machine, Listen]


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """The options of the command line. None leaves a choice to Atoll."""

    output: Path | None  # the folder to write; None: write nothing
    form: str  # one of FORMS
    explain: bool
    diff: bool
    policy: str | None
    choices: Choices
    here: bool  # the deployment will run on this machine
    base: str | None
    home: str | None
    java: str | None
    at: str | None
    data: str | None
    name: str | None
    user: str | None
    image: str | None
    port_base: int

    @property
    def engine_is_here(self) -> bool:
        """Its files are on this machine, not on another and not in an image."""
        return self.here and self.image is None


@dataclass(frozen=True, slots=True)
class RenderJob:
    plan: Plan
    remarks: tuple[str, ...]  # for the user, one line each
    rendering: Rendering | None  # None: there is nothing to write
    summary: Sequence[str]  # of the changes in the user's configuration; empty with all of them
    changes: str  # of the user's configuration; empty unless the options ask for them
    explanation: str  # likewise


def make_job(
    source: str | Plan,
    options: RenderOptions,
    *,
    ground: Callable[[], Ground],
    host: Host,
) -> RenderJob:
    """The job for an engine's name or a plan. `ground` gives what to plan on.

    Raises UsageError, and EngineFailed where another package's engine is at fault.
    """
    _check(options)
    name = source.engine if isinstance(source, Plan) else source
    if rendered := registry.get_rendered(name):
        return _render_only(rendered, source, options, ground)
    # Before the plan: a user's configuration changes what the engine needs beside its heap.
    engine, tree = with_user_tree(registry.get(name), options.base, host, starts=False)
    plan, machine = _plan(source, engine.traits, options, "auto", ground)
    target = _target(plan, facts_of(engine).account, options)
    installation, remarks = _installation(engine, options, host)
    if options.engine_is_here and options.home is None:
        remarks += _cache_remarks(installation, target.user)
    preload = _preload(plan, options, host)
    deployment = lay_out(plan, engine, installation, target, preload=preload, machine=machine)
    return RenderJob(
        plan=plan,
        remarks=remarks,
        rendering=FORMS[options.form](deployment) if options.output is not None else None,
        summary=summary(tree, [deployment.layout]) if tree and not options.diff else (),
        changes=changes(tree, deployment.layout.files) if tree and options.diff else "",
        explanation=explain(deployment.layout, deployment.processes, tree=tree)
        if options.explain
        else "",
    )


def _render_only(
    engine: RenderedEngine,
    source: str | Plan,
    options: RenderOptions,
    ground: Callable[[], Ground],
) -> RenderJob:
    name = engine.traits.name
    if options.explain or options.diff or options.base is not None or options.output is None:
        raise UsageError(f"{name} can only be written as a whole; give -o DIR alone")
    if options.form != "native" or options.home is not None or options.java is not None:
        raise UsageError(
            f"{name} is written as scripts that look for it themselves; "
            "leave out --to, --home and --java"
        )
    plan, _ = _plan(source, engine.traits, options, engine.policy, ground)
    if plan.malloc is not Malloc.SYSTEM or plan.thp is not HugePages.SYSTEM:
        raise UsageError(f"{name} starts its servers itself; leave out --malloc and --thp")
    target = _target(plan, facts_of(engine).account, options)
    return RenderJob(plan, (), engine.render(plan, target, slot_places(plan)), (), "", "")


def _check(options: RenderOptions) -> None:
    if options.output is None and not (options.explain or options.diff):
        raise UsageError("nothing to do; give -o DIR, --explain or --diff")
    if options.diff and options.base is None:
        raise UsageError("--diff compares with your own configuration; name it with --base")
    if (options.form in _OF_IMAGES) != (options.image is not None):
        raise UsageError(
            f"--to {options.form} starts containers; name an image that has the engine with --image"
            if options.image is None
            else f"--image: --to {options.form} starts no container; leave it out"
        )
    if options.image is not None and not _IMAGE.fullmatch(options.image):
        raise UsageError(f"--image {options.image!r}: not an image; give NAME:TAG or NAME@DIGEST")
    if options.base is None or options.output is None:
        return
    # The next rendering would read what was written there.
    if options.output.resolve().is_relative_to(Path(options.base).resolve()):
        raise UsageError(
            f"-o {options.output}: is inside --base, where Atoll writes nothing; "
            "name another folder"
        )


def _plan(
    source: str | Plan,
    traits: EngineTraits,
    options: RenderOptions,
    policy: str,
    ground: Callable[[], Ground],
) -> tuple[Plan, Machine | None]:
    """Also the machine, if it says how much memory it has: a plan file does not, and an object of
    Kubernetes counts what pods may have, without what the kubelet keeps."""
    if isinstance(source, Plan):
        check_room(source, traits)
        return source, None
    machine, listen = ground()
    chosen = options.policy or policy
    plan = make_plan(machine, traits, chosen, listen=listen, **options.choices)
    return plan, None if machine.origin.kind == "node-resource-topology" else machine


def _preload(plan: Plan, options: RenderOptions, host: Host) -> str:
    """The library of the plan's malloc where the deployment will run."""
    if plan.malloc is not Malloc.SYSTEM and not options.engine_is_here:
        raise UsageError(
            f"--malloc {plan.malloc}: where another machine or an image has the library is "
            "unknown; render on that machine, and without an image"
        )
    return library_of(plan.malloc, host)


def _target(plan: Plan, account: str, options: RenderOptions) -> Target:
    folder = _absolute(options.at or str(options.output or plan.engine))
    target = Target(
        name=options.name or plan.engine,
        folder=folder,
        user=options.user or account or plan.engine,
        port_base=options.port_base,
        data=_absolute(options.data) if options.data else f"{folder}/data",
        image=options.image or "",
    )
    check_name(target.name)
    if target.user == "root":
        raise UsageError("no engine needs root; name another --user")
    if not _ACCOUNT.fullmatch(target.user):
        raise UsageError(f"--user {target.user!r}: not an account; name one other than root")
    if target.image and not target.user.isdigit():
        raise UsageError(
            f"--user {target.user}: each image has its own names of accounts; give the account's "
            "number (id -u)"
        )
    return target


def _installation(
    engine: Engine, options: RenderOptions, host: Host
) -> tuple[Installation, tuple[str, ...]]:
    """The engine's installation where the deployment will run, with remarks for the user: the one
    found here, what the options name, or the usual places."""
    found: Installation | None = None
    remarks: tuple[str, ...] = ()
    if options.engine_is_here and options.home is None:
        try:
            found = located(engine, host)
        except (EngineFailed, NotPermitted) as fault:
            remarks = (f"written for the usual places, because {fault}",)
    if found is not None and options.java is None:
        return found, remarks
    home = found.home if found else facts_of(engine).home or f"/opt/{engine.traits.name}"
    return Installation(
        version=found.version if found else "",
        home=_absolute(options.home or home),
        java=_absolute(options.java or "/usr/bin/java"),
    ), remarks


def _cache_remarks(installation: Installation, user: str) -> tuple[str, ...]:
    """The cache is closed to other users, and a rendered deployment runs under its own account."""
    cache = f"{engines_dir()}/"
    closed = [path for path in (installation.home, installation.java) if path.startswith(cache)]
    if not closed or _is_this_user(user):
        return ()
    return (
        f"{closed[0]} is in your own cache, which the user {user!r} may not be able to read; "
        "copy it to a folder that this user can read, and name that with --home or --java",
    )


def _is_this_user(name: str) -> bool:
    try:
        return pwd.getpwnam(name).pw_uid == user_id()
    except KeyError:
        return False  # this machine has no such account


def _absolute(path: str) -> str:
    if not path.isprintable():
        raise UsageError(f"{path!r}: scripts and units cannot name it; use printable characters")
    return os.path.normpath(os.path.join(os.getcwd(), path))
