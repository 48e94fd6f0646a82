"""Q13's reference is DuckDB on the same data; here two witnesses that do not share its plan.

Q13 filters on random text, which the published answers have of another generator
(atoll.suites.tpch). So: plain Python over the rows must find what the reference says, and the
query over the data of the extension's own generator must find what is published.
"""

from __future__ import annotations

import re
from collections import Counter

from atoll.host.local import LocalHost
from atoll.suites import reference
from atoll.suites.tpch import Tpch


def test_plain_python_over_the_rows_agrees_with_the_reference() -> None:
    suite = Tpch()
    data = suite.ensure_data(0.01, host=LocalHost(), progress=lambda *_: None)
    _, orders = reference.run("select o_custkey, o_comment from orders", data.files)
    _, customers = reference.run("select c_custkey from customer", data.files)
    unspecial = re.compile(r"special.*requests", re.DOTALL)
    per_customer = Counter(key for key, comment in orders if not unspecial.search(comment))
    spread = Counter(per_customer[key] for (key,) in customers)
    expected = sorted(spread.items(), key=lambda row: (row[1], row[0]), reverse=True)
    assert len(expected) > 20
    assert [tuple(row) for row in suite.expected("q13", data).rows] == expected


def test_the_query_finds_the_published_answer_in_the_extensions_own_data() -> None:
    connection = reference.with_extension("tpch")
    connection.execute("call dbgen(sf=0.01)")
    found = connection.execute(reference.query_texts("tpch")["q13"]).fetchall()
    _, published = reference.published_answers(0.01)["q13"]
    assert [tuple(map(str, row)) for row in found] == [tuple(row) for row in published]
