"""Profiles in files: damaged ones, and `atoll profile show`."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atoll.cli.profile import command
from atoll.errors import UsageError
from atoll.report.profile.page import profile_html
from atoll.report.profile.pictures import profile_svg
from atoll.report.profile.text import profile_text
from atoll.schema.base import parse
from atoll.schema.profile import Profile
from tests.parts import profiles
from tests.parts.faults import fails
from tests.parts.profiles import MADE
from tests.parts.terminal import printed


def broken(change: Any) -> str:
    raw = json.loads(MADE["epyc"].model_dump_json())
    change(raw)
    return json.dumps(raw)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda p: p["core_latency_cas_ns"]["values"].pop(), "is not 48 by 48"),
        (lambda p: p["core_latency_cas_ns"]["values"][3].pop(), "is not 48 by 48"),
        (lambda p: p["core_latency_cas_ns"]["spreads"].pop(), "spreads"),
        (lambda p: p["core_latency_cas_ns"].update(pus=[0] * 48), "twice"),
        (lambda p: p["core_latency_cas_ns"].update(unsettled=[[0, 99]]), "PU 99"),
        (lambda p: p["core_latency_cas_ns"]["values"][0].__setitem__(1, float("nan")), "values"),
        (lambda p: p["core_latency_cas_ns"]["values"][0].__setitem__(1, -1), "values"),
        (lambda p: p["nodes"]["latency_ns"].pop(), "is not 2 by 2"),
        (lambda p: p["stream"][0].update(working_set_bytes=0), "working_set_bytes"),
        (lambda p: p["stream"][0]["bandwidth_gbs"].update(value=float("inf")), "value"),
        (lambda p: p["churn"][0].update(operations=0), "operations"),
        (lambda p: p["inference"].update(confidence=2), "confidence"),
    ],
)
def test_odd_file_is_one_line(change: Any, word: str) -> None:
    with pytest.raises(UsageError, match=re.escape(word)) as fault:
        parse(Profile, broken(change), where="p.json")
    assert "\n" not in str(fault.value) and str(fault.value).startswith("p.json: ")


LEAVES = st.one_of(
    st.none(), st.floats(), st.integers(-5, 10**20), st.text(max_size=5), st.just([]),
    st.just({}), st.lists(st.integers(0, 99), max_size=4),
)  # fmt: skip


@given(st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.data_too_large])
def test_damaged_file_is_refused_or_drawn(data: st.DataObject) -> None:
    """Any leaf or branch replaced by anything: one line, or a picture; never a traceback."""
    raw = json.loads(SMALL)
    for _ in range(data.draw(st.integers(1, 3))):
        at = raw
        while True:
            keys = sorted(at) if isinstance(at, dict) else list(range(len(at)))
            key = data.draw(st.sampled_from(keys))
            deeper = at[key]
            if not (isinstance(deeper, dict | list) and deeper) or data.draw(st.booleans()):
                at[key] = data.draw(LEAVES)
                break
            at = deeper
    try:
        damaged = parse(Profile, json.dumps(raw), where="p.json")
    except UsageError:
        return
    ElementTree.fromstring(str(profile_svg(damaged)))
    profile_html(damaged)
    printed(profile_text(damaged, colour=False))


SMALL = profiles.epyc(2, 2, 1).model_dump_json()


# ---- The command -----------------------------------------------------------------------------


def test_show_prints_json_and_writes_pictures(tmp_path: Any) -> None:
    path = tmp_path / "p.json"
    path.write_text(MADE["epyc"].model_dump_json())
    run = CliRunner().invoke(command, ["show", str(path), "--json"])
    assert parse(Profile, run.stdout, where="stdout") == MADE["epyc"]
    svg, page = tmp_path / "p.svg", tmp_path / "p.html"
    run = CliRunner().invoke(command, ["show", str(path), "--svg", str(svg), "--html", str(page)])
    assert run.exit_code == 0 and run.stdout == ""
    ElementTree.fromstring(svg.read_text())
    assert page.read_text().startswith("<!doctype html>")
    run = CliRunner().invoke(command, ["show", str(path)])
    assert "8 chiplets of 3 cores" in run.stdout


def test_show_of_a_missing_file_is_one_line(tmp_path: Any) -> None:
    path = tmp_path / "none.json"
    with fails(UsageError, where=path):
        CliRunner().invoke(command, ["show", str(path)], catch_exceptions=False)


def test_show_without_a_saved_profile_says_what_to_do(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with fails(UsageError, command="atoll measure"):
        CliRunner().invoke(command, ["show"], catch_exceptions=False)
