"""Options that several commands share."""

from __future__ import annotations

import pytest

from atoll.cli import run
from tests.parts.faults import check_complaint


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [
        ("up duckdb", "--timeout", "inf"),
        ("bench duckdb", "--minutes", "nan"),
        ("bench duckdb", "--query-limit", "inf"),
        ("bench duckdb", "--fail-if-slower", "nan"),
        ("inspect 1", "--interval", "nan"),
    ],
)
def test_a_number_that_is_not_finite(
    command: str, option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command.split(), f"{option}={value}"]) == 2
    tried = f"atoll {command.split()[0]}"
    check_complaint(capsys.readouterr().err, option=option, value=value, command=tried)
