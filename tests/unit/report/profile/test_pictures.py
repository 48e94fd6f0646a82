"""Pictures and words of a profile: they say what was measured, stand alone, escape, and cope."""

from __future__ import annotations

import base64
import json
import re
import xml.etree.ElementTree as ElementTree
import zlib
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from atoll.cli.profile import command
from atoll.errors import UsageError
from atoll.infer.relations import arrange, ordered, relations
from atoll.report.profile import findings, tables
from atoll.report.profile.heat_colours import STEPS
from atoll.report.profile.page import profile_html
from atoll.report.profile.pictures import chapters, profile_svg
from atoll.report.profile.text import profile_text
from atoll.schema.base import parse
from atoll.schema.profile import Inference, Notice, Profile, SharingPoint
from tests.parts import profiles

SVG = "{http://www.w3.org/2000/svg}"
MADE = {
    "epyc": profiles.epyc(2, 4, 3),
    "sapphire rapids": profiles.sapphire_rapids(),
    "graviton": profiles.graviton(16),
    "one CPU": profiles.one_cpu(),
    "nothing": profiles.profile("nothing", 2),
}


@pytest.fixture(params=sorted(MADE))
def profile(request: pytest.FixtureRequest) -> Profile:
    return MADE[request.param]


def printed(profile: Profile, width: int = 80, *, colour: bool = False, bare: bool = False) -> str:
    console = Console(width=width, highlight=False, color_system="256" if colour else None,
                      force_terminal=colour)  # fmt: skip
    with console.capture() as capture:
        console.print(profile_text(profile, colour=colour, ascii_only=bare))
    return capture.get()


def pixels(svg: str) -> np.ndarray:
    """The first map's colours, by index."""
    data = base64.b64decode(re.findall(r"base64,([^\"]+)", svg)[0])
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    start = data.index(b"IDAT")
    length = int.from_bytes(data[start - 4 : start], "big")
    rows = zlib.decompress(data[start + 4 : start + 4 + length])
    return np.frombuffer(rows, np.uint8).reshape(height, width + 1)[:, 1:]


def test_svg_is_well_formed_and_stands_alone(profile: Profile) -> None:
    text = str(profile_svg(profile))
    root = ElementTree.fromstring(text)
    assert not root.findall(f".//{SVG}script")
    assert not re.search(r'(href|src)="(?!data:image/png;base64,)', text)
    drawn = re.sub(r"base64,[^\"]*", "", text)
    assert not re.search(r"\b(nan|inf|None)\b", drawn)


def test_page_asks_for_nothing_and_has_no_script(profile: Profile) -> None:
    page = profile_html(profile)
    assert "<script" not in page and "default-src 'none'" in page
    assert not re.search(r'(src|href)="http', page)


def test_text_fits_80_columns(profile: Profile) -> None:
    for bare in (False, True):
        lines = printed(profile, bare=bare).splitlines()
        assert max(map(len, lines)) <= 80
    assert printed(profile, bare=True).replace("×", "x").isascii()


def test_headline_says_what_the_machine_is() -> None:
    shape, memory, caches = findings.headline(MADE["epyc"])
    assert "2 packages, 8 chiplets of 3 cores" in shape and "confidence 0.97" in shape
    assert "22.7 ns within a chiplet" in shape and "across chiplets" in shape
    assert "96 ns to own node" in memory and "1.5 GiB" in memory
    assert "L3 28.8 MiB" in caches
    (flat,) = findings.headline(MADE["graviton"])
    assert "no chiplets or packages" in flat
    (tiles,) = findings.headline(MADE["sapphire rapids"])
    assert "bandwidth alone" in tiles and "12.5 GB/s within a chiplet" in tiles
    assert "ns between any two" in tiles


def test_emulated_is_loud_everywhere() -> None:
    one = MADE["one CPU"]
    assert findings.EMULATED in profile_html(one) and "measured</span>" not in profile_html(one)
    assert "EMULATED" in printed(one)
    assert findings.EMULATED not in profile_html(MADE["graviton"])


def test_text_shows_what_is_missing_and_what_did_not_settle() -> None:
    assert "core-to-core latency and bandwidth need two CPUs" in printed(MADE["one CPU"])
    loose, whole = findings.unsettled(MADE["epyc"])
    assert loose == 20 + 2 + 16 and whole > 3 * 48 * 47
    text = printed(MADE["epyc"])
    assert "~198" in text and "misconfigured?" in text and "38 of" in text


def test_a_flat_machine_is_flat_in_characters_too() -> None:
    lines = printed(profiles.graviton(64)).partition("ns one way\n")[2].splitlines()
    assert "".join(lines[:32]).count("▒") == 32 * 64


def test_the_catalog_s_word_has_its_reason_and_its_source() -> None:
    for text in (printed(MADE["epyc"]), profile_html(MADE["epyc"])):
        words_ = " ".join(text.split())
        assert "NPS set for capacity?" in words_.partition("gainst the catalog")[2]
        assert "16 channels of DDR4-3200" in words_


@pytest.mark.parametrize(
    ("spread_over_local", "so"),
    [
        ((0.6, 0.6, 1.001), "together"),
        ((0.99, 2.0, 1.0), "spread"),
        ((1.0, 1.01), "alike"),
        ((0.5, 2.0, 0.5), "varies"),
    ],
)
def test_without_a_crossing_all_points_speak(spread_over_local: list[float], so: str) -> None:
    made = MADE["epyc"].sharing[0]
    points = tuple(
        SharingPoint(
            vector_bytes=1024 << place,
            local_gbs=profiles.figure(10.0),
            distributed_gbs=profiles.figure(10.0 * ratio),
        )
        for place, ratio in enumerate(spread_over_local)
    )
    one = made.model_copy(update={"points": points, "crossing_bytes": None})
    (row,) = tables.sharing_rows(MADE["epyc"].model_copy(update={"sharing": (one,)}))
    assert row[2] == "none" and row[-1] == so


def test_a_disturbance_is_listed_once() -> None:
    notice = Notice(code="disturbed", message="latency: other processes took 30 % of the CPU time")
    without, noticed = (
        MADE["epyc"].model_copy(update={"notices": some}) for some in ((), (notice,))
    )  # fmt: skip
    assert sum("other processes" in line for line in findings.doubts(without)) == 1
    assert sum("other processes" in line for line in findings.doubts(noticed)) == 1


def test_cells_show_measured_blank_and_unsettled() -> None:
    values = np.array([[0, 10, 100], [10, 0, np.nan], [100, 50, 0]], dtype=float)
    matrix = profiles.pair_matrix(values, unsettled=((0, 1),))
    one = profiles.profile("three", 3, core_latency_cas_ns=matrix)
    side = 16
    cells = pixels(str(profile_svg(one))).reshape(3, side, 3, side).swapaxes(1, 2)
    assert (cells[[0, 1, 2], [0, 1, 2]] == 0).all() and (cells[1, 2] == 0).all()
    assert len(np.unique(cells[0, 1])) == 2 and len(np.unique(cells[1, 0])) == 1
    near, far = cells[1, 0, 0, 0], cells[0, 2, 0, 0]
    assert 0 < near < cells[2, 1, 0, 0] < far, "a longer latency is a brighter colour"


def test_flat_machine_looks_flat_and_tiles_do_not() -> None:
    flat = str(profile_svg(MADE["graviton"]))
    assert np.ptp(pixels(flat)[pixels(flat) > 0].astype(int)) < STEPS * 0.75
    bandwidth = [c.body for c in chapters(MADE["sapphire rapids"])[0].pictures][-1]
    image = pixels(bandwidth)
    cell = image.shape[0] // 56
    inside, across = image[: 14 * cell, : 14 * cell], image[: 14 * cell, 14 * cell :]
    assert np.median(inside) < STEPS / 3 < np.median(across)


def test_pus_are_ordered_by_groups() -> None:
    groups = ((0, 2, 4, 6), (1, 3, 5, 7))
    smt = ((0, 4), (1, 5), (2, 6), (3, 7))
    inference = Inference(chiplets=groups, packages=(), smt=smt, levels=(), confidence=1,
                          source="latency")  # fmt: skip
    arrangement = arrange(inference, range(8))
    assert arrangement.pus == (0, 4, 2, 6, 1, 5, 3, 7)
    assert [(one.start, one.stop) for one in arrangement.chiplets] == [(0, 4), (4, 8)]
    assert arrangement.names == ("SMT siblings", "within a chiplet", "across chiplets")
    assert arrangement.relation[0].tolist() == [-1, 0, 1, 1, 2, 2, 2, 2]
    matrix = profiles.pair_matrix(np.arange(64, dtype=float).reshape(8, 8))
    values, _ = ordered(matrix, arrangement)
    assert arrange(None, (3, 1, 2)).pus == (1, 2, 3)
    assert values[0, 1] == 4 and values[1, 0] == 32
    assert sum(len(one.values) for one in relations(matrix, inference)) == 56


def test_384_pus_stay_a_reasonable_file() -> None:
    count = 384
    matrix = profiles.pair_matrix(profiles.noisy(np.full((count, count), 100.0), 0.1, 1))
    one = profiles.profile("large", count, core_latency_cas_ns=matrix)
    assert len(str(profile_svg(one))) < 400_000


def test_stream_marks_where_arrays_lie() -> None:
    stream = next(p for c in chapters(MADE["epyc"]) for p in c.pictures if "STREAM" in p.name)
    assert all(f">{level}</text>" in stream.body for level in ("L2", "memory"))
    assert all(row[3] and row[4] for row in tables.stream_rows(MADE["epyc"]))


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1))
@settings(max_examples=15)
def test_titles_from_files_are_escaped(title: str) -> None:
    evil = f'<script>alert("x")</script>{title}\x1b[31m'
    one = MADE["one CPU"].model_copy(update={"machine_title": evil})
    assert "<script" not in profile_html(one) and "<script" not in str(profile_svg(one))
    ElementTree.fromstring(str(profile_svg(one)))
    assert "\x1b" not in printed(one) and "\x1b" not in profile_html(one)


# ---- Files of others -------------------------------------------------------------------------


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
    printed(damaged)


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
    run = CliRunner().invoke(command, ["show", str(tmp_path / "none.json")])
    assert isinstance(run.exception, UsageError) and "cannot be read" in str(run.exception)


def test_show_without_a_saved_profile_says_what_to_do(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    run = CliRunner().invoke(command, ["show"])
    assert isinstance(run.exception, UsageError) and "atoll measure" in str(run.exception)
