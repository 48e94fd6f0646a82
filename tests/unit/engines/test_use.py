"""Engines of other packages: how they are found, and what Atoll says of one that is wrong."""

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
from atoll.host.fake import FakeHost
from atoll.schema.deployment import ProcessSpec, Role
from atoll.supervise.patience import within
from tests.parts.toy import toy_plan

PLAN = toy_plan(2)
FOUND = Installation("1", "/opt/odd")

MODULE = r"""
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


def test_anothers_engine_is_found_behind_our_own(odd: Engine) -> None:
    assert registry.names()[-1] == "odd"
    assert registry.names()[0] == "spark"


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("Other", "its traits name it 'other'; the entry point must have the same name"),
        ("Bare", "it has no locate"),
        ("Broken", "RuntimeError: out of order"),
        ("Untraited", "its traits are dict and not EngineTraits"),
        ("Nobody", "AttributeError: module 'odd_package' has no attribute 'Nobody'"),
    ],
)
def test_one_that_is_none_is_told(brings: Callable[..., ModuleType], kind: str, why: str) -> None:
    brings(odd=kind)
    with pytest.raises(EngineFailed) as told:
        registry.get("odd")
    assert f"engine 'odd' (odd_package:{kind}) cannot be loaded: {why}; mend" in str(told.value)


def test_two_of_one_name_are_refused(brings: Callable[..., ModuleType]) -> None:
    brings(odd="Engine", odd_="Other")
    assert registry.names().count("odd") == 1
    with pytest.raises(EngineFailed, match="both bring an engine 'odd'; uninstall one of them"):
        registry.get("odd")


def test_one_with_the_name_of_ours_is_passed_over_and_that_is_said(
    brings: Callable[..., ModuleType], capsys: pytest.CaptureFixture[str]
) -> None:
    brings(spark="Engine")
    assert type(registry.get("spark")).__module__ == "atoll.engines.spark.engine"
    assert registry.names().count("spark") == 1
    assert run(["engine", "list"]) == 0
    assert "spark of odd_package:Engine is ignored" in capsys.readouterr().out


def test_an_unknown_one_is_a_mistake_of_the_users() -> None:
    with pytest.raises(UsageError, match="engine 'odd' is not known; known are: spark, "):
        registry.get("odd")


# ---- what it raises ------------------------------------------------------------------------------


def test_its_fault_is_told_with_its_line(odd: Engine) -> None:
    with pytest.raises(EngineFailed) as told:
        located(odd, FakeHost())
    line = MODULE.splitlines().index('    def locate(self, host): return {}["home"]') + 1
    assert str(told.value).startswith("engine 'odd': KeyError: 'home' (")
    assert f"odd_package.py:{line}, in locate); mend or uninstall" in str(told.value)
    assert isinstance(told.value.__cause__, KeyError)


def test_a_fault_of_ours_stays_one(odd: Engine) -> None:
    with pytest.raises(ZeroDivisionError), foreign_faults():
        1 / 0  # noqa: B018 - it is raised here and not in the other package


def test_what_a_client_raises_is_an_engines_fault(odd: Engine) -> None:
    with pytest.raises(EngineFailed, match="engine 'odd': ValueError: no"):
        within(5, "connecting", lambda: odd.connect(["a"], timeout_s=1))


def test_a_fault_that_it_tells_itself_stays_as_it_is(brings: Callable[..., ModuleType]) -> None:
    """A bench waits longer for the reason where a server is gone."""
    brings(odd="Honest")
    odd = registry.get("odd")
    with pytest.raises(ServerGone, match=r"^the server at a is gone$"):
        within(5, "connecting", lambda: odd.connect(["a"], timeout_s=1))


def test_the_list_of_engines_survives_it(odd: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["engine", "list"]) == 0
    assert "odd: engine 'odd': KeyError: 'home' (" in capsys.readouterr().out


def test_a_command_tells_it_in_one_line(
    brings: Callable[..., ModuleType], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    brings(odd="Based")
    machine = ["--synthetic", "Package:1 NUMANode:1(memory=8GB) Core:4 PU:1"]
    assert run(["render", "odd", *machine, "--base", str(tmp_path), "--diff"]) == 5
    said = capsys.readouterr().err
    assert said.startswith("atoll: engine 'odd': TypeError: no base (")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("asked", "method"),
    [(("--base", "."), "on"), ((), "unattended"), (("--explain",), "unattended")],
)
def test_an_engine_that_gives_none_is_told(
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
    said = capsys.readouterr().err
    assert f"engine 'odd': its {method} gives NoneType" in said


# ---- what it gives -------------------------------------------------------------------------------


def gives(engine: Engine, monkeypatch: pytest.MonkeyPatch, method: str, value: object) -> None:
    monkeypatch.setattr(type(engine), method, lambda *_, **__: value)


def test_what_is_none_of_the_types_is_told(odd: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    gives(odd, monkeypatch, "locate", None)
    with pytest.raises(EngineFailed, match="'odd': its locate gives NoneType 'None' and not an"):
        located(odd, FakeHost())
    with pytest.raises(EngineFailed, match="its ports gives NoneType 'None' and not a number"):
        wanted_ports(odd, PLAN)
    with pytest.raises(EngineFailed, match="its attach gives str 'create view' and not a list"):
        attaching(odd, Table("t", "/t.parquet", ()))
    gives(odd, monkeypatch, "connect", [])
    with pytest.raises(EngineFailed, match="a list with a client for each endpoint"):
        connected(odd, ["a"], timeout_s=1)
    gives(odd, monkeypatch, "connect", [object()])
    with pytest.raises(EngineFailed, match="its client has no execute"):
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
        (None, "gives NoneType 'None' and not a Layout"),
        (laid(processes=()), "it has no process"),
        (laid(processes=None), "its processes are NoneType and not tuple"),
        (laid(files=None), "its files are NoneType and not Mapping"),
        (laid(endpoints="sock"), "its endpoints are str and not tuple"),
        (laid(processes=({"name": "worker"},)), "dict is no ProcessSpec"),
        (laid(processes=(SPEC, SPEC)), "two processes are named 'worker-0'"),
        (laid(endpoints=()), "it has no endpoint"),
        (laid(endpoints=(8080,)), "8080 is not text"),
        (laid(files={"/etc/odd": ""}), "'/etc/odd' is not a path below the run folder"),
        (laid(links={"../x": "y"}), r"'\.\./x' is not a path below the run folder"),
        (laid(copies={"a/b": "/x"}), "'a/b' is a file, a copy or a link"),
        (laid(files={"a": b"text"}), "b'text' is not text"),
        (of(slot=2), "process 'worker-0' sits in slot 2 of 2"),
        (of(argv=()), "process 'worker-0' has no argument"),
        (of(name="a/b"), "process 'a/b': its log is named after it"),
        (of(cwd="../up"), r"cwd '\.\./up' is not below the run folder"),
    ],
)
def test_a_layout_that_cannot_be_started_is_refused(
    odd: Engine, monkeypatch: pytest.MonkeyPatch, layout: object, why: str
) -> None:
    gives(odd, monkeypatch, "layout", layout)
    with pytest.raises(EngineFailed, match=why):
        laid_out(odd, PLAN, FOUND, run_dir="/run", ports=())


def test_one_that_can_is_given_as_it_is(odd: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    gives(odd, monkeypatch, "layout", GOOD)
    assert laid_out(odd, PLAN, FOUND, run_dir="/run", ports=()) is GOOD
