"""What a bench that is put together tells of itself."""

from __future__ import annotations

from atoll.bench.axes import Axis, Grid
from atoll.bench.job import BenchRequest, Length, configured, make_job
from atoll.bench.results import resumable
from atoll.engines.api import Installation
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import UsageError
from tests.parts.bench import FINGERPRINT, WIM, header, lines, results
from tests.parts.fake_host import FakeHost
from tests.parts.faults import fails
from tests.parts.machines import milan


def test_thread_placement_is_refused_under_atolls_scheduler_before_anything_starts() -> None:
    request = BenchRequest(
        targets=("duckdb",),
        suite="tpch",
        scale_factor=0.01,
        grid=Grid(
            (
                Axis("policy", ("win",)),
                Axis("placement", ("dense",)),
                Axis("scheduler", ("duckdb", "atoll")),
            ),
            product=True,
        ),
        queries="1",
        length=Length(),
        query_limit_s=60,
        command="atoll bench duckdb",
    )
    with fails(UsageError, placement="dense", engine="duckdb"):
        make_job(request, host=FakeHost(), machine=milan(), progress=lambda what, done: None)


def version(**texts: str) -> str:
    base = UserTree("/etc/spark", {f"{name}.conf": text for name, text in texts.items()})
    return configured(Installation("4.3.0", "/x"), base).version


def test_a_run_goes_on_with_the_same_configuration_only() -> None:
    assert configured(Installation("4.3.0", "/x"), None).version == "4.3.0"
    assert version(a="1", b="2") == version(b="2", a="1") != version(a="1", b="3")
    changed = FINGERPRINT.model_copy(update={"engine_versions": {"spark": version(a="1")}})
    found = results(lines((WIM,), 1)[:-1], header(WIM))
    now = f"spark {version(a='1')}"
    with fails(UsageError, where="r", what="engine versions", before="spark 4.3.0", now=now):
        resumable(found, header(WIM, fingerprint=changed), where="r")
