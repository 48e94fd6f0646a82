"""Clusters that run already: what a URL may show, and which processes are behind it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.bench.address import parse_address, without
from atoll.bench.cluster import addresses_here, look_at_cluster
from atoll.bench.replay import nodes_of
from atoll.errors import UsageError
from atoll.inspect.listeners import holders, tcp_listeners, unix_listeners
from tests.parts.bench import FakeClient
from tests.parts.fake_host import FakeHost

PORTS = {"postgresql": 5432, "mariadb": 3306, "https": 443}

# ---- URLs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "told", "place"),
    [
        ("postgresql://ann:pw1@db1:5433/x", "postgresql://ann@db1:5433/x", "db1:5433"),
        ("postgresql://ann@db1/x", "postgresql://ann@db1/x", "db1:5432"),
        ("https://u:pw1@h/hive/s?token=pw1", "https://u@h/hive/s", "h:443"),
        ("http://[::1]:8080", "http://[::1]:8080", "::1:8080"),
        (
            "postgresql:///x?host=/run/pg&port=5433&password=pw1&sslmode=require",
            "postgresql:///x?host=%2Frun%2Fpg&port=5433",
            "/run/pg:5433",
        ),
        ("postgresql://%2Frun%2Fpg/x", "postgresql://%2Frun%2Fpg/x", "/run/pg:5432"),
        ("postgresql:///x", "postgresql:///x", "local"),
        ("postgresql://h/x?port=²", "postgresql://h/x?port=%C2%B2", "h:5432"),
        ("postgresql://a%2Fb:pw1@h/x", "postgresql://a%2Fb@h/x", "h:5432"),
        ("postgresql://:5433/x", "postgresql://:5433/x", "local:5433"),
        ("mariadb://ann:pw1@h/x?unix_socket=/run/m", "mariadb://ann@h/x?unix_socket=%2Frun%2Fm",
         "/run/m:3306"),
    ],
)  # fmt: skip
def test_what_may_be_told_of_a_url(url: str, told: str, place: str) -> None:
    found = parse_address(url, PORTS)
    assert (found.shown, found.place) == (told, place)
    assert parse_address(found.shown, PORTS).secrets == ()


@given(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=6, max_size=20))
def test_a_password_is_never_told(password: str) -> None:
    secret = f"#{password}"
    quoted = f"%23{password}"
    for url in (
        f"postgresql://ann:{quoted}@db:1/x",
        f"postgresql://db/x?password={quoted}",
        f"https://h?SSLPassword={quoted}&access_token={quoted}",
    ):
        found = parse_address(url, PORTS)
        assert secret not in found.shown and quoted not in found.shown
        message = f"no {secret} at {quoted} in {url}"
        assert secret not in without(found.secrets, message)
        assert quoted not in without(found.secrets, message)


@pytest.mark.parametrize(
    "url",
    ["", "host=h password=hush", "h:1", "pg://h:port/x", "//h", "pg://a:\nb@h", "pg://\udce9@h"],
)
def test_what_is_no_url_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(UsageError, match="URL: ") as caught:
        parse_address(url, PORTS)
    assert "hush" not in str(caught.value)


def test_a_secret_is_hidden_from_ps() -> None:
    script = (
        "import sys; from atoll.host.arguments import hide; hide('s3cret'); hide('');"
        "print(open('/proc/self/cmdline').read().replace(chr(0), ' '), sys.argv[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "--url=pg://a:s3cret@h", "s3cret"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    shown, kept = done.stdout.rsplit(maxsplit=1)
    assert "--url=pg://a:xxxxxx@h xxxxxx" in shown
    assert kept == "--url=pg://a:s3cret@h"


# ---- processes -----------------------------------------------------------------------------------

TCP = """  sl  local_address rem_address st tx_queue rx_queue tr tm->when retrnsmt uid timeout inode
   0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 111 1 0
   1: 0100007F:1538 0100007F:9999 01 00000000:00000000 00:00000000 00000000 0 0 112 1 0
   2: 0100007F:1539 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 113 1 0
"""
UNIX = """Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 211 /run/pg/.s.PGSQL.5432
0000000000000000: 00000002 00000000 00000000 0001 01 212 /run/pg/.s.PGSQL.5432
0000000000000000: 00000002 00000000 00010000 0001 01 213
0000000000000000: 00000002 00000000 00010000 0001 01 214 /run/pg/.s.PGSQL.5433
0000000000000000: 00000002 00000000 00010000 0001 01 215 /run/my db/m.sock
"""


def stat(pid: int, parent: int) -> str:
    return f"{pid} (postgres) S {parent} " + " ".join(["0"] * 48)


def listening() -> FakeHost:
    """10 listens at 5432, its child 11 has the socket too; 20 listens at 5433."""
    return FakeHost(
        {
            "/proc/net/tcp": TCP,
            "/proc/net/unix": UNIX,
            "/proc/10/stat": stat(10, 1),
            "/proc/10/fd/3": "socket:[111]",
            "/proc/10/fd/4": "socket:[211]",
            "/proc/11/stat": stat(11, 10),
            "/proc/11/fd/3": "socket:[111]",
            "/proc/20/stat": stat(20, 1),
            "/proc/20/fd/0": "/dev/null",
            "/proc/20/fd/9": "socket:[113]",
        }
    )


def test_who_listens() -> None:
    host = listening()
    assert tcp_listeners(host, "127.0.0.1", 5432) == {"111"}
    assert holders(host, tcp_listeners(host, "127.0.0.1", 5432)) == [10]
    assert holders(host, tcp_listeners(host, "127.0.0.1", 5433)) == [20]
    assert holders(host, tcp_listeners(host, "127.0.0.1", 5434)) == []
    assert unix_listeners(host, "/run/pg/.s.PGSQL.5432", None) == {"211"}
    assert holders(host, unix_listeners(host, "/run/pg/", 5432)) == [10]
    assert unix_listeners(host, "/run/pg", 5433) == {"214"}, "another server in the same folder"
    assert unix_listeners(host, "/run", 5432) == frozenset()
    assert unix_listeners(host, "/run/my db/m.sock", 3306) == {"215"}


def net(*sockets: tuple[str, int]) -> str:
    """A table of proc(5) with these listening, the first with inode 1."""
    rows = [
        f"  {number}: {address}:{port:04X} 0:0000 0A 0:0 00:0 0 0 0 {number} 1 0"
        for number, (address, port) in enumerate(sockets, start=1)
    ]
    return "\n".join(["head", *rows])


V6_ALL, V6_LOOPBACK = "0" * 32, "0" * 24 + "01000000"
V4_IN_V6 = "0000000000000000FFFF00000200007F"  # ::ffff:127.0.0.2, as Java binds it


@pytest.mark.parametrize(
    ("table", "sockets", "address", "found"),
    [
        ("tcp", [("0100007F", 9), ("0200007F", 9)], "127.0.0.2", {"2"}),
        ("tcp", [("0100007F", 9), ("00000000", 9)], "127.0.0.1", {"1"}),
        ("tcp", [("0100007F", 9), ("00000000", 9)], "127.0.0.3", {"2"}),
        ("tcp", [("0100007F", 9)], "127.0.0.3", set()),
        ("tcp", [("00000000", 9)], "::1", set()),
        ("tcp6", [(V6_ALL, 9)], "127.0.0.1", {"1"}),
        ("tcp6", [(V6_ALL, 9)], "::1", {"1"}),
        ("tcp6", [(V6_ALL, 9), (V6_LOOPBACK, 9)], "::1", {"2"}),
        ("tcp6", [(V4_IN_V6, 9)], "127.0.0.2", {"1"}),
        ("tcp6", [(V4_IN_V6, 8)], "127.0.0.2", set()),
    ],
)  # fmt: skip
def test_who_listens_at_an_address(
    table: str, sockets: list[tuple[str, int]], address: str, found: set[str]
) -> None:
    if sys.byteorder != "little":
        pytest.skip("the table has its words in the machine's byte order, here the other one")
    assert tcp_listeners(FakeHost({f"/proc/net/{table}": net(*sockets)}), address, 9) == found


def test_what_is_here() -> None:
    assert addresses_here("127.0.0.1") == ["127.0.0.1"]
    assert addresses_here("127.0.0.2") == ["127.0.0.2"]
    assert "127.0.0.1" in addresses_here("localhost")
    assert addresses_here("192.0.2.1") == []  # RFC 5737: nobody's
    for name in ("no-such-host.invalid", "a..b", "x" * 300, "", "http://no host"):
        assert addresses_here(name) == []


def test_a_cluster_is_looked_for_where_it_says_that_its_nodes_are() -> None:
    class Knowing(FakeClient):
        def nodes(self, *, timeout_s: float) -> list[str]:
            return ["http://10.0.0.1:8080", "http://[::1%", "no URL"]

    found = nodes_of(Knowing(FakeHost()), PORTS)
    assert [(one.host, one.port) for one in found] == [
        ("10.0.0.1", 8080),
        ("http://[::1%", None),
        ("no URL", None),
    ]
    _, unknown = look_at_cluster(FakeHost(), found[1:], deep=False)
    assert unknown == "its processes run on other machines and were not inspected"
    assert nodes_of(FakeClient(FakeHost()), PORTS) == []


def test_what_cannot_be_seen_is_said() -> None:
    host = listening()

    def look(url: str) -> str:
        seen, unknown = look_at_cluster(host, [parse_address(url, PORTS)], deep=False)
        assert seen == ()
        return unknown

    assert "other machines" in look("postgresql://192.0.2.1/x")
    assert "no process seen from here" in look("postgresql://127.0.0.1:5434/x")
    del host.files["/proc/20/fd/9"]
    assert "another user's" in look("postgresql://127.0.0.1:5433/x")
