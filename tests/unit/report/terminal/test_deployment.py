"""How to connect, and a deployment's state, on a terminal."""

from __future__ import annotations

import pytest

from atoll.report.terminal.deployment import access_lines, duration, endpoint, ready_lines
from atoll.schema.deployment import Access, Deployment, State
from tests.parts.toy import toy_plan

LONG = "/run/user/1000/atoll/0123abcd/sql-0.sock"


def deployment(*access: Access, state: State = State.READY) -> Deployment:
    return Deployment(
        name="mine",
        id="ab",
        boot_id="b",
        run_dir="/run/ab",
        scratch_dir="/x/ab",
        plan=toy_plan(1),
        state=state,
        supervisor=None,
        keeper=None,
        access=access,
        created_unix_s=0.0,
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (65, "1 min 5 s"),
        (3600, "1 h 0 min"),
        (4 * 86400 + 3 * 3600 + 59, "4 d 3 h"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_ready_says_how_to_connect_on_lines_that_can_be_copied() -> None:
    command = "client " + "long-word " * 20
    servers = [Access(address=f"a{i}", command=f"{command}{i}", remark="note") for i in range(6)]
    first, *lines = ready_lines("mine", servers)
    assert first == "mine: ready; stop it with 'atoll down mine'"
    assert lines[:2] == ["  address  a0", f"  connect  {command}0"]
    assert lines[-2:] == ["  and 2 more servers: atoll status mine", "  note     note"]
    assert len(access_lines("mine", servers, most=6)) == 6 * 2 + 1


def test_the_endpoint_fits_a_table() -> None:
    url, path = (
        Access(address="http://127.0.0.1:8080", command="x"),
        Access(address=LONG, command="x"),
    )
    assert endpoint(deployment(url)) == "http://127.0.0.1:8080"
    assert endpoint(deployment(path, path, path)) == "UNIX socket +2"
    database = Access(address="postgresql://127.0.0.1:5433", command="x")
    assert endpoint(deployment(database, database)) == "127.0.0.1:5433 +1"
    assert endpoint(deployment(url, state=State.FAILED)) == endpoint(deployment()) == "–"
