"""What a bench that is put together tells of itself."""

from __future__ import annotations

from atoll.bench.job import configured
from atoll.bench.results import resumable
from atoll.engines.api import Installation
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import UsageError
from tests.parts.bench import FINGERPRINT, WIM, header, lines, results
from tests.parts.faults import fails


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
