"""The suites and the bench: data beside other generators, a measured pass beside its queries by
hand, and a report of many results.

    python -m perf.suites [tpcds|jcch|pass|report]...
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from perf.harness import wait_until_idle
from perf.suites_data import compare_jcch, compare_tpcds
from perf.suites_pass import compare_pass
from perf.suites_report import compare_report

PARTS: dict[str, Callable[[], None]] = {
    "tpcds": compare_tpcds,
    "jcch": compare_jcch,
    "pass": compare_pass,
    "report": compare_report,
}


def compare(parts: Sequence[str] = ()) -> None:
    for part in parts or PARTS:
        wait_until_idle()
        PARTS[part]()


if __name__ == "__main__":
    compare(sys.argv[1:])
