"""A plan's malloc and huge pages, rendered."""

from __future__ import annotations

import pytest

from atoll.engines import registry
from atoll.engines.api import Installation
from atoll.errors import UsageError
from atoll.plan import make_plan
from atoll.render.deployment import lay_out
from atoll.render.native import render_native
from atoll.render.systemd import unit_files
from atoll.schema.plan import HugePages, Malloc
from tests.parts.faults import fails
from tests.parts.machines import milan
from tests.parts.render import ENGINES, TARGET


@pytest.mark.parametrize("engine", ENGINES)
def test_a_malloc_is_preloaded_by_every_process_and_huge_pages_are_refused(engine: str) -> None:
    made, there = registry.get(engine), Installation("1", "/opt/engine", "/opt/java")
    plan = make_plan(milan(1, 2, 4), made.traits, "wicp", malloc=Malloc.JEMALLOC)
    laid = lay_out(plan, made, there, TARGET, preload="/l/j.so")
    native, systemd = render_native(laid), unit_files(laid)
    assert all("\nexport LD_PRELOAD=/l/j.so\n" in text for text in native.scripts.values())
    units = [text for name, text in systemd.items() if name.endswith(".service")]
    assert units and all("\nEnvironment=LD_PRELOAD=/l/j.so\n" in text for text in units)
    assert "`LD_PRELOAD` gives every process jemalloc" in native.files["README.md"]
    assert not any("--malloc" in text for text in (*native.scripts.values(), *units))
    with fails(UsageError, option="--thp never"):
        lay_out(plan.model_copy(update={"thp": HugePages.NEVER}), made, there, TARGET)
