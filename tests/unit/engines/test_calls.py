"""Engines of other packages: how they are found, and how Atoll reports their faults."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from atoll.cli import run
from atoll.engines import registry
from atoll.engines.api import Engine, Installation, Layout, Table
from atoll.engines.calls import (
    attaching,
    connected,
    foreign_faults,
    laid_out,
    located,
    wanted_ports,
)
from atoll.errors import EngineFailed, ServerGone, UsageError
from atoll.schema.deployment import ProcessSpec, Role
from atoll.schema.plan import Placement, Plan, TaskThreads
from atoll.supervise.client_calls import within
from tests.parts.fake_host import FakeHost
from tests.parts.faults import check_complaint, fails
from tests.parts.toy import toy_plan

PLAN = toy_plan(2)
FOUND = Installation("1", "/opt/odd")

MODULE = r"""
from atoll.engines.facts import EngineFacts
from atoll.engines.rendered import Rendering
from atoll.schema.plan import EngineTraits
from atoll.errors import ServerGone

class Engine:
    traits = EngineTraits(
        name="odd", distributed=False, parallel_query=True, has_coordinator=False, jvm=False,
        heap_ratio=0.5, ratio_source="made up", min_heap_bytes=0, coordinator_bytes=0,
        overhead_bytes=0,
    )
    def locate(self, host): return {}["home"]
    def ports(self, plan): return None
    def layout(self, plan, installation, *, run_dir, ports, scratch_dir=None): 1 / 0
    def connect(self, endpoints, *, timeout_s): raise ValueError("no\\nway")
    def attach(self, table): return "create view"

class Based(Engine):
    def on(self, base): raise TypeError("no\nbase")

class Honest(Engine):
    def connect(self, endpoints, *, timeout_s): raise ServerGone("the server at a is gone")

class Forgetful(Based):
    def on(self, base): pass
    def unattended(self): pass

class Other(Engine):
    traits = Engine.traits.model_copy(update={"name": "other"})

class Bare:
    traits = Engine.traits

class Broken(Engine):
    def __init__(self): raise RuntimeError("out of order")

class Unfactual(Engine):
    facts = {"account": "odd"}

class Unbalanced(Engine):
    facts = EngineFacts(log_summary="(")

class Groupless(Engine):
    facts = EngineFacts(comments_and_quotes="--.*")

class Written:
    traits = Engine.traits
    policy = "win"
    def render(self, plan, target, places): return Rendering({"start": " ".join(places[0])})

class Untraited(Engine):
    traits = {"name": "odd"}
"""


@pytest.fixture
def brings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., ModuleType]]:
    """Makes another package's module, and lets its classes be entry points by name."""

    def bring(**classes: str) -> ModuleType:
        points = [
            EntryPoint(name.rstrip("_"), f"odd_package:{kind}", registry.GROUP)
            for name, kind in classes.items()
        ]
        monkeypatch.setattr(
            registry, "entry_points", lambda group: points if group == registry.GROUP else []
        )
        return importlib.import_module("odd_package")

    (tmp_path / "odd_package.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield bring
    sys.modules.pop("odd_package", None)


@pytest.fixture
def odd(brings: Callable[..., ModuleType]) -> Engine:
    brings(odd="Engine")
    return registry.get("odd")


def test_an_engine_of_another_package_follows_atolls_own(odd: Engine) -> None:
    assert registry.names()[-1] == "odd"
    assert registry.names()[0] == "spark"


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("Other", "its traits name it 'other'; the entry point must have the same name"),
        ("Bare", "it has no locate"),
        ("Broken", "RuntimeError: out of order"),
        ("Untraited", "its traits are dict and not EngineTraits"),
        ("Unfactual", "its facts are dict and not EngineFacts"),
        ("Unbalanced", "its facts contain a wrong regular expression"),
        ("Groupless", "its facts have no group 'comment'"),
        ("Nobody", "AttributeError: module 'odd_package' has no attribute 'Nobody'"),
    ],
)
def test_a_class_that_is_not_an_engine_is_refused(
    brings: Callable[..., ModuleType], kind: str, why: str
) -> None:
    brings(odd=kind)
    with pytest.raises(EngineFailed) as caught:
        registry.get("odd")
    assert f"engine 'odd' (odd_package:{kind}) cannot be loaded: {why}" in str(caught.value)
    assert "; fix or uninstall odd_package" in str(caught.value)


def test_two_engines_with_one_name_are_refused(brings: Callable[..., ModuleType]) -> None:
    brings(odd="Engine", odd_="Other")
    assert registry.names().count("odd") == 1
    with fails(EngineFailed, engine="'odd'", package="odd_package"):
        registry.get("odd")


def test_an_engine_with_the_name_of_atolls_is_ignored_with_a_remark(
    brings: Callable[..., ModuleType], capsys: pytest.CaptureFixture[str]
) -> None:
    brings(spark="Engine")
    assert type(registry.get("spark")).__module__ == "atoll.engines.spark.engine"
    assert registry.names().count("spark") == 1
    assert run(["engine", "list"]) == 0
    assert "spark of odd_package:Engine is ignored" in capsys.readouterr().out


def test_an_engine_that_is_only_rendered(
    brings: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    brings(other="Other")
    point = EntryPoint("odd", "odd_package:Written", registry.RENDERED)
    groups = {registry.RENDERED: [point]}
    monkeypatch.setattr(registry, "entry_points", lambda group: groups.get(group, []))
    machine = ["--synthetic", "Package:1 NUMANode:2(memory=8GB) Core:4 PU:1"]
    assert run(["render", "odd", *machine, "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out/start").read_text() == "numactl -C 0-3 -m 0 --"
    assert registry.names().count("odd") == 0


def test_atolls_own_engines_are_found_by_name() -> None:
    for name in ("spark", "duckdb"):
        assert registry.get(name).traits.name == name


def test_an_unknown_engine_is_a_usage_error() -> None:
    known, rendered = (
        ", ".join(registry.names(group)) for group in (registry.GROUP, registry.RENDERED)
    )
    with fails(UsageError, engine="'odd'", known=known, rendered=rendered):
        registry.get("odd")


# ---- what it raises ------------------------------------------------------------------------------


def test_a_fault_is_reported_with_its_line(odd: Engine) -> None:
    line = MODULE.splitlines().index('    def locate(self, host): return {}["home"]') + 1
    place = f"{sys.modules['odd_package'].__file__}:{line}"
    with fails(
        EngineFailed, engine="odd", fault="KeyError: 'home'", place=place, method="locate"
    ) as caught:
        located(odd, FakeHost())
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_fault_of_atoll_stays_as_it_is(odd: Engine) -> None:
    with pytest.raises(ZeroDivisionError), foreign_faults():
        1 / 0  # noqa: B018 - it is raised here and not in the other package


def test_a_fault_of_a_client_is_the_engines(odd: Engine) -> None:
    with pytest.raises(EngineFailed, match="engine 'odd': ValueError: no"):
        within(5, "connecting", lambda: odd.connect(["a"], timeout_s=1))


def test_an_error_that_it_raises_itself_stays_as_it_is(brings: Callable[..., ModuleType]) -> None:
    """A bench waits longer for the reason where a server is gone."""
    brings(odd="Honest")
    odd = registry.get("odd")
    with fails(ServerGone, place="a"):
        within(5, "connecting", lambda: odd.connect(["a"], timeout_s=1))


def test_the_list_of_engines_reports_it(odd: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["engine", "list"]) == 0
    assert "odd: engine 'odd': KeyError: 'home' (" in capsys.readouterr().out


def test_a_command_reports_it_in_one_line(
    brings: Callable[..., ModuleType], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    brings(odd="Based")
    machine = ["--synthetic", "Package:1 NUMANode:1(memory=8GB) Core:4 PU:1"]
    assert run(["render", "odd", *machine, "--base", str(tmp_path), "--diff"]) == 5
    output = capsys.readouterr().err
    assert output.startswith("atoll: engine 'odd': TypeError: no base (")
    assert output.count("\n") == 1


@pytest.mark.parametrize(
    ("asked", "method"),
    [(("--base", "."), "on"), ((), "unattended"), (("--explain",), "unattended")],
)
def test_an_engine_that_returns_no_engine_is_refused(
    brings: Callable[..., ModuleType],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked: tuple[str, ...],
    method: str,
) -> None:
    brings(odd="Forgetful")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "a.properties").write_text("a=1\n")
    monkeypatch.chdir(tmp_path / "etc")
    machine = ["--synthetic", "Package:1 NUMANode:1(memory=8GB) Core:4 PU:1", "--home", "/opt"]
    assert run(["render", "odd", *machine, *asked, "-o", str(tmp_path / "out")]) == 5
    check_complaint(
        capsys.readouterr().err, engine="odd", method=method, value="None", type="NoneType"
    )


# ---- what it gives -------------------------------------------------------------------------------


def gives(engine: Engine, monkeypatch: pytest.MonkeyPatch, method: str, value: object) -> None:
    monkeypatch.setattr(type(engine), method, lambda *_, **__: value)


def test_a_value_of_another_type_is_refused(odd: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    gives(odd, monkeypatch, "locate", None)
    nothing = {"engine": "odd", "value": "None", "type": "NoneType"}
    with fails(EngineFailed, method="locate", wanted="Installation", **nothing):
        located(odd, FakeHost())
    with fails(EngineFailed, method="ports", wanted="int", **nothing):
        wanted_ports(odd, PLAN)
    view = {"engine": "odd", "value": "create view", "type": "str"}
    with fails(EngineFailed, method="attach", wanted="list", **view):
        attaching(odd, Table("t", "/t.parquet", ()))
    gives(odd, monkeypatch, "connect", [])
    with fails(EngineFailed, engine="odd", method="connect", value="[]", type="list"):
        connected(odd, ["a"], timeout_s=1)
    gives(odd, monkeypatch, "connect", [object()])
    with fails(EngineFailed, engine="odd", method="execute"):
        connected(odd, ["a"], timeout_s=1)


SPEC = ProcessSpec(name="worker-0", role=Role.WORKER, slot=0, argv=("a",), env={}, stage=0)
GOOD = Layout((SPEC,), files={"a/b": "text"}, endpoints=("sock",))


def laid(**changed: Any) -> Layout:
    return replace(GOOD, **changed)


def of(**changed: Any) -> Layout:
    return laid(processes=(SPEC.model_copy(update=changed),))


@pytest.mark.parametrize(
    ("layout", "why"),
    [
        (None, "returned 'None' of type NoneType, not Layout"),
        (laid(processes=()), "it has no process"),
        (laid(processes=None), "'NoneType' object is not iterable"),
        (laid(files=None), "'NoneType' object is not iterable"),
        (laid(endpoints="sock"), "no tuple of endpoints"),
        (laid(processes=({"name": "worker"},)), "'dict' object has no attribute 'name'"),
        (laid(processes=(SPEC, SPEC)), "process 'worker-0': each needs a name"),
        (laid(endpoints=()), "no tuple of endpoints"),
        (laid(endpoints=(8080,)), "8080 is not text"),
        (laid(files={"/etc/odd": ""}), "'/etc/odd' is not a path below the run folder"),
        (laid(links={"../x": "y"}), r"'\.\./x' is not a path below the run folder"),
        (laid(copies={"a/b": "/x"}), "'a/b' is listed twice"),
        (laid(files={"a": b"text"}), "b'text' is not text"),
        (of(slot=2), "process 'worker-0' uses slot 2 of 2"),
        (of(argv=()), "process 'worker-0' has no argument"),
        (of(name="a/b"), "process 'a/b': each needs a name"),
        (of(cwd="../up"), r"'\.\./up' is not a path below the run folder"),
    ],
)
def test_a_layout_that_cannot_be_started_is_refused(
    odd: Engine, monkeypatch: pytest.MonkeyPatch, layout: object, why: str
) -> None:
    gives(odd, monkeypatch, "layout", layout)
    with pytest.raises(EngineFailed, match=why):
        laid_out(odd, PLAN, FOUND, run_dir="/run", ports=())


def test_a_layout_that_can_be_started_is_returned(
    odd: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    gives(odd, monkeypatch, "layout", GOOD)
    assert laid_out(odd, PLAN, FOUND, run_dir="/run", ports=()) is GOOD


def placed(tasks: TaskThreads) -> Plan:
    slots = [
        slot.model_copy(update={"cpus": (4, 5, 6), "thread_cpus": (4, 6, 5)}) for slot in PLAN.slots
    ]
    update = {"slots": tuple(slots), "placement": Placement.SPARSE, "task_threads": tasks}
    return PLAN.model_copy(update=update)


def test_an_openmp_program_is_started_with_its_places(
    odd: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = SPEC.model_copy(update={"name": "coordinator", "slot": None})
    gives(odd, monkeypatch, "layout", replace(GOOD, processes=(SPEC, coordinator)))
    found = laid_out(odd, placed(TaskThreads(openmp=True)), FOUND, run_dir="/run", ports=())
    assert [spec.env for spec in found.processes] == [
        {**SPEC.env, "OMP_PLACES": "{4},{6},{5}", "OMP_PROC_BIND": "close"},
        coordinator.env,
    ]
    assert laid_out(
        odd, placed(TaskThreads(comm="t")), FOUND, run_dir="/run", ports=()
    ).processes == (SPEC, coordinator)


def test_thread_placement_is_refused_where_atolls_scheduler_seats_the_threads(
    odd: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    seats = SPEC.model_copy(update={"seats_threads": True})
    gives(odd, monkeypatch, "layout", replace(GOOD, processes=(seats,)))
    with fails(UsageError, placement="sparse", engine="toy"):
        laid_out(odd, placed(TaskThreads(comm="t")), FOUND, run_dir="/run", ports=())
