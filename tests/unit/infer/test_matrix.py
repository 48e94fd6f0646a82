"""A matrix of another tool as text: accepted forms, refused forms and their messages."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.errors import UsageError
from atoll.infer.matrix import log_cost, parse_matrix

FULL = np.array([[np.nan, 20.5, 90], [21, np.nan, 91], [92, 93, np.nan]])
WHOLE = np.array([[np.nan, 20, 30], [20, np.nan, 40], [30, 40, np.nan]])
LOWER = np.where(np.tri(3, k=-1, dtype=bool), FULL, np.nan)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nan,20.5,90\n21,nan,91\n92,93,nan\n", FULL),
        ("\ufeffnan,20.5,90\r\n21,nan,91\r\n92,93,nan\r\n", FULL),
        (" - 20.5 90\n 21 - 91\n 92 93 -", FULL),
        ("0;20,5;90\n21;0;91\n92;93;0\n", FULL),
        ("\t20.5\t90\n21\t\t91\n92\t93\t\n", FULL),
        ("# by a tool\n0,20.5,90\n\n21,0,91\n92,93,0\n", FULL),
        ("0,20.5,90,\n21,0,91,\n92,93,0,\n", FULL),
        ("cpu,0,1,2\n0,,20.5,90\n1,21,,91\n2,92,93,\n", FULL),
        (",0,1,2\n0,0,20.5,90\n1,21,0,91\n2,92,93,0\n", FULL),
        (",4,5,6\n4,0,20.5,90\n5,21,0,91\n6,92,93,0\n", FULL),
        ("0,1,2\nnan,20.5,90\n21,nan,91\n92,93,nan\n", FULL),
        ("1,2,3\n0,20.5,90\n21,0,91\n92,93,0\n", FULL),
        ("     0    1   2\n0  nan 20.5  90\n1  21 nan 91\n2 92 93 nan\n", FULL),
        ('"a","b","c"\n0,20.5,90\n21,0,91\n92,93,0\n', FULL),
        ("a,b,c\na,0,20.5,90\nb,21,0,91\nc,92,93,0\n", FULL),
        (",,\n21,,\n92,93,\n", LOWER),
        ("\n21\n92,93\n", LOWER),
        ("0,0,0\n21,0,0\n92,93,0\n", LOWER),
        ("0\n21 0\n92 93 0\n", LOWER),
        (",21,92\n,,93\n,,\n", LOWER.T),
        ("nan,20\n20,nan", np.array([[np.nan, 20], [20, np.nan]])),
        ("a,b,ns\n0,1,20.5\n0,2,90\n1,0,21\n1,2,91\n2,0,92\n2,1,93\n", FULL),
        ("1 0 21\n2 0 92\n2 1 93\n", LOWER),
        ("cpu;other;ns\n8;4;21\n9;4;92\n9;8;93\n9;9;0\n", LOWER),
        ("0,1,20\n1,0,20\n", np.array([[np.nan, 20], [20, np.nan]])),
        ("0,20,30\n20,0,40\n30,40,0\n", WHOLE),
        ("a,b,c\n0,20,30\n20,0,40\n30,40,0\n", WHOLE),
        ("0,1,2\n0,20,30\n20,0,40\n30,40,0\n", WHOLE),
        ("5,20,30\n20,5,40\n30,40,5\n", WHOLE),
    ],
)
def test_reads_what_tools_write(text: str, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(parse_matrix(text, where="m.csv"), expected)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "m.csv: contains no numbers"),
        ("nan,nan\nnan,nan", "m.csv: contains no numbers"),
        ("hello\nworld", "m.csv: contains no numbers"),
        (
            "0.0ns,25.0ns\n25.0ns,0.0ns",
            "m.csv: line 1, column 1: '0.0ns' is not a number; leave units out",
        ),
        (
            "cpu,0,1\n0,0,25 GB/s\n1,25 GB/s,0",
            "m.csv: line 2, column 3: '25 GB/s' is not a number; leave units out",
        ),
        ("0,1,25ns\n0,2,90ns\n1,2,91ns", "m.csv: line 1, column 3: '25ns' is not a number"),
        ("a,b,ns\n0,1,2\n0,1,3\n0,2,4\n1,2,3\n1,3,3", "m.csv: line 3: the pair 0,1 is listed"),
        ("0,1,2\n0,2,-4\n1,2,3", "m.csv: line 2, column 3: -4 is not a positive number"),
        ("0,1,2\n2,3,4\n4,5,4\n6,7,4\n8,9,4", "m.csv: only 11% of the pairs"),
        ("5", "m.csv: one figure only"),
        ("0,1,2\n3,0,4", "m.csv: not square: 2 rows, but 3 columns in line 1"),
        ("1,2\n3,4\n5,6", "m.csv: not square: 3 rows, but 2 columns in line 1"),
        ("0,20,30\n20,0\n30,40,0", "m.csv: not square: 3 rows, but 2 columns in line 2"),
        ("0,20,30\n20,0,-4\n30,40,0", "m.csv: line 2, column 3: -4 is not a positive number"),
        ("0,20,30\n20,0,0\n30,40,0", "m.csv: line 2, column 3: 0 is not a positive number"),
        ("0,20,30\n20,0,inf\n30,40,0", "m.csv: line 2, column 3: 'inf' is not"),
        ("0,20,30\n20,0,1e999\n30,40,0", "m.csv: line 2, column 3: inf is not"),
        ("0,20,30\n20,0,4O\n30,40,0", "m.csv: line 2, column 3: '4O' is not"),
        ("cpu,0,1,2\n0,0,20,x7\n1,20,0,4\n2,5,6,0", "m.csv: line 2, column 4: 'x7' is not"),
        (",,,\n20,,,\n,,,\n30,40,,", "m.csv: no figure between row 3 and any other"),
        (",,,,,\n9,,,,,\n,9,,,,\n,,9,,,\n,,,9,,\n,,,,9,\n", "m.csv: only 33% of the pairs"),
    ],
)
def test_says_what_is_wrong_and_where(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_matrix(text, where="m.csv")
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


CELLS = st.sampled_from(
    [
        "",
        "0",
        "1",
        "2",
        "9.5",
        "-1",
        "nan",
        "inf",
        "1e999",
        "x",
        "cpu",
        "-",
        "1,5",
        "\u0663",
        "\x00",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(CELLS, max_size=5), max_size=5), st.sampled_from([",", ";", "\t", " "]))
def test_any_text_is_a_matrix_or_a_usage_error(rows: list[list[str]], mark: str) -> None:
    _matrix_or_refused("\n".join(mark.join(row) for row in rows))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_characters_too(text: str) -> None:
    _matrix_or_refused(text)


def _matrix_or_refused(text: str) -> None:
    try:
        matrix = parse_matrix(text, where="m")
    except UsageError:
        return
    assert matrix.ndim == 2
    assert matrix.shape[0] == matrix.shape[1] >= 2
    assert np.isnan(np.diag(matrix)).all()
    given_ = matrix[~np.isnan(matrix)]
    assert len(given_)
    assert (given_ > 0).all()
    assert np.isfinite(given_).all()


def test_homes_are_averaged_and_a_disturbed_one_is_left_out() -> None:
    cost = log_cost(np.array([[np.nan, 20, 40], [22, np.nan, np.nan], [400, 50, np.nan]]))
    assert np.allclose(np.exp(cost[0, 1]), np.sqrt(20 * 22))
    assert np.allclose(np.exp(cost[0, 2]), 40)
    assert np.allclose(np.exp(cost[1, 2]), 50)
    np.testing.assert_array_equal(cost, cost.T)
