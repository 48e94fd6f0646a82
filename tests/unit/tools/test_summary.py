"""tools/test_summary.py: what counts as run, and what must not pass unseen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import test_summary as summary

PYTEST = """<testsuites><testsuite name="pytest">
<testcase classname="tests.unit.test_a" name="test_one"/>
<testcase classname="tests.engines.test_spark" name="test_two">
  <skipped type="pytest.skip" message="no JDK 17"/></testcase>
<testcase classname="tests.unit.test_a" name="test_three">
  <failure message="assert 1 == 2">long text</failure></testcase>
<testcase classname="tests.unit.test_b" name="test_four"><error message="fixture broke"/></testcase>
</testsuite></testsuites>"""

CTEST = """<testsuite name="(empty)">
<testcase name="Xml.Reads" classname="Xml.Reads" status="run"/>
<testcase name="Exec.Numa" classname="Exec.Numa" status="notrun"><skipped message=""/>
  <system-out>exec_test.cpp:7: Skipped
set_mempolicy is not permitted here
</system-out></testcase>
<testcase name="Xml.Cut" classname="Xml.Cut" status="fail"><failure message="Failed"/>
  <system-out>[ RUN      ] Xml.Cut
xml_test.cpp:9: Failure
Expected equality of these values:
  1
</system-out></testcase>
</testsuite>"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "python.xml").write_text(PYTEST)
    (tmp_path / "native-release.xml").write_text(CTEST)
    return tmp_path


def test_reads_pytest_and_ctest(folder: Path) -> None:
    cases = summary.read_cases(folder / "python.xml")
    cases += summary.read_cases(folder / "native-release.xml")
    assert [(case.suite, case.outcome) for case in cases] == [
        ("tests.unit", "passed"),
        ("tests.engines", "skipped"),
        ("tests.unit", "failed"),
        ("tests.unit", "failed"),
        ("native-release", "passed"),
        ("native-release", "skipped"),
        ("native-release", "failed"),
    ]
    assert cases[1].reason == "no JDK 17"
    assert cases[5].reason == "set_mempolicy is not permitted here"
    assert cases[6].reason == (
        "Failed: xml_test.cpp:9: Failure Expected equality of these values: 1"
    )


def test_a_sanitizers_report_is_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "native-asan.xml"
    path.write_text(CTEST.replace("xml_test.cpp:9: Failure", "==7==ERROR: AddressSanitizer: SEGV"))
    assert summary.read_cases(path)[-1].reason == "Failed: ==7==ERROR: AddressSanitizer: SEGV"


def test_last_line_has_the_totals(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert summary.main([str(folder)]) == 1
    out = capsys.readouterr().out
    assert out.endswith("\n2 passed, 3 failed, 2 skipped\n")
    assert "tests.engines: 1 x no JDK 17" in out
    assert "tests.unit.test_b::test_four: fixture broke" in out


def test_a_wanted_suite_that_is_missing_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "python.xml").write_text(
        '<testsuite><testcase classname="a" name="b"/></testsuite>'
    )
    assert summary.main([str(tmp_path)]) == 0
    assert summary.main(["--want", "native-asan", str(tmp_path)]) == 1
    assert "native-asan: did not run" in capsys.readouterr().out


@pytest.mark.parametrize("content", ["<testsuite></testsuite>", "<testsuite><testca"])
def test_an_empty_or_cut_off_file_is_no_pass(tmp_path: Path, content: str) -> None:
    (tmp_path / "python.xml").write_text(content)
    assert summary.main(["--want", "python", str(tmp_path)]) == 1


def test_a_folder_without_results_fails(tmp_path: Path) -> None:
    assert summary.main([str(tmp_path / "nothing")]) == 1


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("tests.engines.test_spark::* | no JDK 17", 0),
        ("tests.engines.* | no network", 1),  # skipped for another reason than the listed one
        ("tests.unit.* | no JDK 17", 1),
        ("# tests.engines.* | no JDK 17", 1),
    ],
)
def test_only_listed_skips_pass(tmp_path: Path, line: str, code: int) -> None:
    results = tmp_path / "results"
    results.mkdir()
    (results / "python.xml").write_text(
        '<testsuite><testcase classname="tests.engines.test_spark" name="test_two">'
        '<skipped message="no JDK 17"/></testcase></testsuite>'
    )
    listed = tmp_path / "expected.txt"
    listed.write_text(line + "\n")
    assert summary.main(["--expected-skips", str(listed), str(results)]) == code


def test_an_expected_skip_wants_a_reason() -> None:
    with pytest.raises(ValueError, match="line 1"):
        summary.read_expected("tests.*\n")


def test_the_committed_list_can_be_read(root: Path) -> None:
    summary.read_expected((root / "tests/expected_skips.txt").read_text())


def test_what_a_suite_counts_is_added_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, boots in (("vm-1", 2), ("vm-2", 1)):
        properties = '<property name="boots" value="1"/>' * boots
        text = PYTEST.replace(
            'name="pytest">', f'name="pytest"><properties>{properties}</properties>'
        )
        (tmp_path / f"{name}.xml").write_text(text)
    summary.main([str(tmp_path)])
    assert f"  {tmp_path.name}: boots: 3\n" in capsys.readouterr().out
