"""Say what ran, what could not and why, from the JUnit files that pytest and ctest leave.

    python -m tools.test_summary --want NAME... [--expected-skips FILE] FOLDER...

A wanted file that is missing or empty is a failure: a suite that did not run has proved
nothing. With --expected-skips, so is a skip that the file does not list. The last line is
`N passed, N failed, N skipped`; the exit status is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import fnmatch
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Outcome = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class Case:
    suite: str
    name: str  # what expected_skips.txt matches: 'tests.engines.test_spark::test_answers'
    outcome: Outcome
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Expected:
    pattern: str
    reason: str


def read_cases(path: Path) -> list[Case]:
    """The test cases of one JUnit file. Raises ElementTree.ParseError on a cut-off file."""
    return [_case(path.stem, element) for element in ElementTree.parse(path).iter("testcase")]


def read_counts(path: Path) -> Counter[str]:
    """Whole numbers that the suite itself recorded (boots of guests), added up by their names."""
    found: Counter[str] = Counter()
    for element in ElementTree.parse(path).iterfind("./testsuite/properties/property"):
        name, value = element.get("name", ""), element.get("value", "")
        if value.isdecimal():
            found[f"{path.parent.name}: {name}"] += int(value)
    return found


def _case(stem: str, element: ElementTree.Element) -> Case:
    group, name = element.get("classname", ""), element.get("name", "")
    suite = stem
    if group.startswith("tests."):  # pytest: one file, several folders
        suite = ".".join(group.split(".")[:2])
    if stem.startswith("native"):  # ctest repeats the name as the class
        group = stem
    full = f"{group}::{name}"
    for kind in ("failure", "error"):
        found = element.find(kind)
        if found is not None:
            return Case(suite, full, "failed", _one_line(_fault(found.get("message", ""), element)))
    skipped = element.find("skipped")
    if skipped is not None or element.get("status") in ("notrun", "disabled"):
        said = "" if skipped is None else skipped.get("message", "")
        return Case(suite, full, "skipped", _one_line(_skip_reason(said, element)))
    return Case(suite, full, "passed")


def _skip_reason(said: str, element: ElementTree.Element) -> str:
    # GoogleTest prints 'FILE:LINE: Skipped' and then the reason; ctest's own word says nothing.
    printed = re.search(r": Skipped\n(.*)", element.findtext("system-out", ""))
    return printed[1] if printed else said or "no reason given"


def _fault(said: str, element: ElementTree.Element) -> str:
    # ctest's own word is "Failed": a sanitizer's report or GoogleTest's first expectation says why.
    printed = re.search(
        r"^.*(?:Sanitizer: |runtime error: ).*|^.*: Failure\n(?:.*\n){1,3}",
        element.findtext("system-out", ""),
        re.MULTILINE,
    )
    return f"{said}: {printed[0]}" if printed and said in ("", "Failed") else said


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else line[:197] + "..."


def read_expected(text: str) -> list[Expected]:
    """Lines `PATTERN | REASON`; blank lines and # comments aside. Raises ValueError."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        pattern, bar, reason = line.partition(" | ")
        if not bar or not reason.strip():
            raise ValueError(f"line {number}: wants PATTERN | REASON")
        found.append(Expected(pattern.strip(), reason.strip()))
    return found


def unexpected(cases: Sequence[Case], expected: Sequence[Expected]) -> list[Case]:
    """The skips that no line allows; a line allows those whose reason contains its own."""
    return [
        case
        for case in cases
        if case.outcome == "skipped"
        and not any(
            fnmatch.fnmatchcase(case.name, line.pattern) and line.reason in case.reason
            for line in expected
        )
    ]


def render(
    cases: Sequence[Case], faults: Sequence[str], recorded: Mapping[str, int] | None = None
) -> str:
    """The summary as text; its last line holds the totals."""
    lines = ["", "What ran"]
    counts = Counter((case.suite, case.outcome) for case in cases)
    for suite in sorted({case.suite for case in cases}):
        passed, failed, skipped = (counts[suite, kind] for kind in ("passed", "failed", "skipped"))
        lines.append(f"  {suite:<24} {passed:5} passed {failed:4} failed {skipped:4} skipped")
    lines += [f"  {name}: {count}" for name, count in sorted((recorded or {}).items())]
    skips = Counter((case.suite, case.reason) for case in cases if case.outcome == "skipped")
    if skips:
        lines.append("What could not run")
        lines += [f"  {suite}: {n} x {why}" for (suite, why), n in sorted(skips.items())]
    bad = [f"{case.name}: {case.reason}" for case in cases if case.outcome == "failed"]
    if bad or faults:
        lines.append("What failed")
        lines += [f"  {line}" for line in [*bad, *faults]]
    total = Counter(case.outcome for case in cases)
    failed = total["failed"] + len(faults)
    lines.append(f"{total['passed']} passed, {failed} failed, {total['skipped']} skipped")
    return "\n".join(lines)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Summarise JUnit files.")
    parser.add_argument("--want", action="append", default=[], metavar="NAME")
    parser.add_argument("--expected-skips", type=Path, metavar="FILE")
    parser.add_argument("folders", nargs="+", type=Path)
    given = parser.parse_args(argv)

    cases: list[Case] = []
    faults: list[str] = []
    seen: set[str] = set()
    recorded: Counter[str] = Counter()
    for folder in given.folders:
        files = sorted(folder.glob("*.xml"))
        if not files:
            faults.append(f"{folder.name}: did not run")
        for path in files:
            try:
                found = read_cases(path)
                recorded += read_counts(path)
            except ElementTree.ParseError as fault:
                faults.append(f"{path}: cut off ({fault})")
                continue
            if found:
                seen.add(path.stem)
            cases += found
    faults += [f"{name}: did not run" for name in given.want if name not in seen]
    if given.expected_skips is not None:
        try:
            expected = read_expected(given.expected_skips.read_text())
        except ValueError as fault:
            sys.exit(f"test_summary: {given.expected_skips}: {fault}")
        faults += [
            f"{case.name}: skipped, and not on {given.expected_skips}: {case.reason}"
            for case in unexpected(cases, expected)
        ]
    print(render(cases, faults, recorded))
    return 1 if faults or any(case.outcome == "failed" for case in cases) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
