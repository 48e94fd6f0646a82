"""Two profiles side by side: only what is larger than both intervals is a difference."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from atoll.cli.profile import command
from atoll.errors import UsageError
from atoll.infer.compare import Comparison, compare_figures, compare_profiles
from atoll.report.profile.compare import compare_html, compare_svg, compare_text, verdicts
from atoll.schema.environment import LABELS, Environment
from atoll.schema.profile import Figure, Mode, Profile
from tests.parts import profiles
from tests.parts.faults import fails
from tests.parts.profiles import figure
from tests.parts.terminal import printed

MADE = {
    "two packages": profiles.epyc(2, 4, 3),
    "one package": profiles.epyc(1, 8, 4),
    "tiles": profiles.sapphire_rapids(),
    "flat": profiles.graviton(16),
    "one CPU": profiles.one_cpu(),
}


def row(comparison: Comparison, topic: str, what: str) -> Any:
    return next(one for one in comparison.rows if (one.topic, one.what) == (topic, what))


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        (figure(100, 0.01), figure(110, 0.01), "differs"),
        (figure(100, 0.01), figure(101, 0.01), "no difference"),  # intervals touch
        (figure(100, 0.001), figure(106, 0.05), "no difference"),  # smaller than B's interval
        (figure(100, 0.01), None, "only in A"),
        (None, figure(100, 0.01), "only in B"),
    ],
)
def test_a_difference_is_larger_than_both_intervals(
    a: Figure | None, b: Figure | None, verdict: str
) -> None:
    assert compare_figures("t", "w", "ns", a, b).verdict == verdict


def test_better_is_lower_for_latency_and_higher_for_bandwidth() -> None:
    assert compare_figures("t", "w", "ns", figure(1), figure(2)).better == "A"
    assert compare_figures("t", "w", "GB/s", figure(1), figure(2)).better == "B"
    assert compare_figures("t", "w", "GB/s", figure(1), figure(1)).better == ""


FIGURES = st.builds(figure, st.floats(0.01, 1e6), st.floats(0, 0.9))


@given(FIGURES, FIGURES)
def test_both_directions_agree(a: Figure, b: Figure) -> None:
    there, back = (compare_figures("t", "w", "ns", *pair) for pair in ((a, b), (b, a)))
    assert there.verdict == back.verdict
    assert {there.better, back.better} in ({"A", "B"}, {""})
    assert there.ratio and there.ratio.low <= there.ratio.value <= there.ratio.high
    if there.verdict == "differs":
        assert not there.ratio.low <= 1 <= there.ratio.high


def test_a_machine_with_itself_and_with_other_noise_does_not_differ() -> None:
    a = MADE["two packages"]
    assert not [one for one in compare_profiles(a, a).rows if one.verdict != "no difference"]
    b = profiles.epyc(2, 4, 3, seed=17)
    comparison = compare_profiles(a, b)
    assert comparison.same_machine and not [
        one for one in comparison.rows if one.verdict == "differs"
    ]
    assert "0 of" in verdicts(comparison)[0]


def test_machines_with_other_numbers_of_cpus_compare_by_kinds_of_pairs() -> None:
    comparison = compare_profiles(MADE["two packages"], MADE["one package"])
    assert not comparison.same_machine
    topic = "core latency, compare-and-swap"
    assert row(comparison, topic, "within a chiplet").verdict == "no difference"
    assert row(comparison, topic, "across packages").verdict == "only in A"
    assert row(comparison, "memory by node", "other node").verdict == "only in A"
    shapes = {one.name: (one.a, one.b) for one in comparison.shapes}
    assert shapes["cores"] == ("24", "32")


def test_stream_is_compared_with_one_working_set_in_one_level() -> None:
    comparison = compare_profiles(MADE["two packages"], MADE["one package"])
    rows = [one for one in comparison.rows if one.topic == "STREAM"]
    assert rows and all(one.a and one.b for one in rows)
    assert all(" in " in one.what for one in rows)


@pytest.mark.parametrize("b", sorted(MADE))
@pytest.mark.parametrize("a", ["two packages", "one CPU"])
def test_any_two_are_drawn(a: str, b: str) -> None:
    comparison = compare_profiles(MADE[a], MADE[b])
    ElementTree.fromstring(str(compare_svg(comparison, MADE[a], MADE[b])))
    assert "<script" not in compare_html(comparison, MADE[a], MADE[b])
    text = printed(compare_text(comparison))
    assert max(map(len, text.splitlines())) <= 80
    assert ("EMULATED" in text) == ("one CPU" in (a, b))


def test_titles_are_escaped() -> None:
    evil = MADE["flat"].model_copy(update={"machine_title": "<script>x</script>"})
    comparison = compare_profiles(evil, evil)
    assert "<script" not in compare_html(comparison, evil, evil)
    assert "<script" not in str(compare_svg(comparison, evil, evil))


def test_command_compares_two_files(tmp_path: Any) -> None:
    paths = []
    for name in ("two packages", "flat"):
        path = tmp_path / f"{name}.json"
        path.write_text(MADE[name].model_dump_json())
        paths.append(str(path))
    run = CliRunner().invoke(command, ["compare", *paths, "--json"])
    comparison = json.loads(run.stdout)
    assert comparison["same_machine"] is False and comparison["rows"]
    page = tmp_path / "c.html"
    run = CliRunner().invoke(command, ["compare", *paths, "--html", str(page)])
    assert run.exit_code == 0 and page.read_text().startswith("<!doctype html>")
    assert "B / A" in CliRunner().invoke(command, ["compare", *paths]).stdout


def test_emulated_and_measured_are_not_compared(tmp_path: Any) -> None:
    real, made_up = tmp_path / "real.json", tmp_path / "emulated.json"
    real.write_text(MADE["flat"].model_dump_json())
    made_up.write_text(MADE["one CPU"].model_dump_json())
    for pair in ((real, made_up), (made_up, real)):
        with fails(UsageError, where=made_up):
            CliRunner().invoke(command, ["compare", *map(str, pair)], catch_exceptions=False)
    (sentence,) = verdicts(compare_profiles(MADE["one CPU"], MADE["one CPU"]))
    assert "share no figure" in sentence


def test_settings_that_differ_have_names_in_words() -> None:
    a = MADE["flat"]
    changed = {"thp_enabled": "always", "kernel_cmdline": "", "memory_bytes": 64 << 30}
    other = a.environment.model_copy(update=changed)
    b = a.model_copy(update={"environment": other, "mode": Mode.QUICK})
    settings = {one.name: (one.a, one.b) for one in compare_profiles(a, b).settings}
    assert settings == {
        "Kernel command line": ("quiet", "unknown"),
        "Transparent huge pages": ("madvise", "always"),
        "Memory": ("512 GiB", "64 GiB"),
        "Mode of measuring": ("full", "quick"),
    }
    assert set(LABELS) == set(Environment.model_fields)


def test_a_ratio_of_a_figure_that_did_not_settle_is_marked() -> None:
    comparison = compare_profiles(MADE["two packages"], MADE["flat"])
    rows = tuple(
        compare_figures(one.topic, one.what, one.unit, one.a, one.b and loose(one.b))
        for one in comparison.rows
    )
    marked = comparison.model_copy(update={"rows": rows})
    for sentence in verdicts(marked)[1:]:
        assert ": ~" in sentence
    assert not any("~" in sentence for sentence in verdicts(comparison)[1:])


def loose(one: Figure) -> Figure:
    return one.model_copy(update={"settled": False})


def test_profiles_are_left_as_they_were() -> None:
    before: Profile = MADE["flat"].model_copy(deep=True)
    compare_profiles(MADE["flat"], MADE["tiles"])
    assert MADE["flat"] == before
