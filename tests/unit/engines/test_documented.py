"""docs/adding-an-engine.md names each protocol of engines, clients and backends, with members."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import pytest

from atoll.engines import api, rendered
from atoll.engines.sql import host
from tests.parts.paths import ROOT

PAGE = (ROOT / "docs/adding-an-engine.md").read_text()


def protocols(module: ModuleType) -> list[Any]:
    return [
        one
        for _, one in inspect.getmembers(module, inspect.isclass)
        if one.__module__ == module.__name__ and getattr(one, "_is_protocol", False)
    ]


@pytest.mark.parametrize(
    "protocol", [each for module in (api, host, rendered) for each in protocols(module)]
)
def test_the_page_names_a_protocol_and_its_members(protocol: Any) -> None:
    members = {*vars(protocol), *protocol.__annotations__}
    own = {name for name in members if not name.startswith("_")}
    assert own, protocol
    missing = {name for name in own if f"`{name}" not in PAGE and f"### {name}" not in PAGE}
    assert missing == set()
    if protocol not in (api.Client, api.Engine):  # 'a client', 'the class'
        assert f"{protocol.__name__}" in PAGE
