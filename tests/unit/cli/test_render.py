"""`atoll render` as it is typed: what it writes, byte for byte, and what it refuses."""

from __future__ import annotations

import json
import os
import pwd
import re
from pathlib import Path

import pytest

from atoll.cli import run
from atoll.engines.api import Installation
from atoll.engines.trino.engine import TrinoEngine
from tests.parts.faults import check_complaint
from tests.parts.paths import GOLDEN
from tests.parts.render import state_of

MACHINE = str(GOLDEN / "machines" / "unequal.xml")
Capture = pytest.CaptureFixture[str]

HOME = ("--home", "/opt/engine", "--java", "/opt/java")
WIDE = ("--synthetic", "NUMANode:1(memory=32TB) Core:1600 PU:1", "-n", "1600")
SMALL = ("--synthetic", "NUMANode:1(memory=28GB) Core:4 PU:1")
TOO_HIGH = {"option": "--port-base 64000"}
WIN = ("--policy", "win")
IMAGE = ("--image", "db:1", "--user", "1001")
KUBELET = ("--reserve-cores", "1", "--reserve", "1124MiB")
COMPOSE = ("--to", "compose", *IMAGE)
# Where a rendering is for another machine, nothing of this one is in it.
ELSEWHERE = ("--machine", MACHINE, "--at", "/srv/there")
RENDERINGS = {
    "trino-systemd": ("trino", "--to", "systemd"),
    "postgresql-native": ("postgresql", *WIN),
    "postgresql-compose": ("postgresql", *WIN, *COMPOSE),
    "spark-slurm": ("spark", *WIN, "--to", "slurm"),
    "postgresql-ansible": ("postgresql", *WIN, "--to", "ansible"),
    "postgresql-k8s": ("postgresql", *WIN, "--to", "k8s", *IMAGE, *KUBELET),
    "singlestore": ("singlestore",),
    "greenplum": ("greenplum", *WIN),
}


_OTHERS = ("plan.json", "processes.json", ".atoll-render.json")


def tree_text(folder: Path) -> str:
    """All files of a folder in one text; secrets are fresh in each, and checksums with them."""
    parts = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_symlink():
            parts.append(f"==== {name} -> {os.readlink(path)}\n")
        elif path.is_file() and name.name not in _OTHERS:
            parts.append(f"==== {name} {path.stat().st_mode & 0o777:o}\n{path.read_text()}")
    return re.sub(r"\b[0-9a-f]{32,}\b", "SECRET", "".join(parts))


@pytest.mark.parametrize("name", RENDERINGS)
def test_a_rendering_is_as_it_was_looked_at(name: str, tmp_path: Path) -> None:
    assert run(["render", *RENDERINGS[name], *ELSEWHERE, "-o", str(tmp_path / "out")]) == 0
    golden = GOLDEN / "render" / f"{name}.txt"
    found = tree_text(tmp_path / "out")
    if os.environ.get("ATOLL_RENDER_ANEW"):
        golden.write_text(found)
    assert found == golden.read_text(), (
        "read the difference; ATOLL_RENDER_ANEW=1 writes the file again"
    )


def test_what_nobody_has_run_says_so(tmp_path: Path) -> None:
    for engine in ("singlestore", "greenplum"):
        folder = tmp_path / engine
        assert run(["render", engine, *ELSEWHERE, "-o", str(folder)]) == 0
        for path in folder.rglob("*"):
            if path.suffix in (".sh", ".md") or path.name == "gpinitsystem_config":
                assert "rendered, not run" in path.read_text().lower(), path


def test_a_users_configuration_is_read_and_never_written(tmp_path: Path, capsys: Capture) -> None:
    base = tmp_path / "etc"
    (base / "catalog").mkdir(parents=True)
    (base / "config.properties").write_text(
        "coordinator=true\nhttp-server.http.port=80\nmy.password=hunter2\n"
    )
    (base / "jvm.config").write_text("-server\n-Xmx400G\n")
    (base / "catalog" / "hive.properties").write_text("connector.name=hive\n")
    (base / "keystore.jks").write_bytes(b"\xfe\xed\0")
    for path in (*base.rglob("*"), base):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = state_of(base)
    out = tmp_path / "out"
    arguments = ["render", "trino", *ELSEWHERE, "--base", str(base), "--diff", "-o", str(out)]
    assert run(arguments) == 0
    assert state_of(base) == before
    said = capsys.readouterr()
    assert "\n  -Xmx: -Xmx400G -> -Xmx" in said.out
    assert "hunter2" not in said.out + said.err
    assert "my.password=hunter2\n" in (out / "worker-0/etc/config.properties").read_text()
    assert (out / "worker-0/etc/keystore.jks").read_bytes() == b"\xfe\xed\0"
    assert "hunter2" not in "".join(path.read_text() for path in out.glob("bin/*"))
    (tmp_path / "link").symlink_to(base)
    for inside in (base / "out", tmp_path / "link" / "out"):
        assert run([*arguments[:-1], str(inside)]) == 2
        check_complaint(capsys.readouterr().err, path=inside, option="--base")
    for path in (base, *base.rglob("*")):
        path.chmod(0o700)


def test_the_screen_lists_what_changes_in_short(tmp_path: Path, capsys: Capture) -> None:
    base = tmp_path / "it's mine"
    base.mkdir()
    (base / "config.properties").write_text(
        "coordinator=true\nquery-manager.required-workers=10\nquery.max-run-time=1h\n"
        "internal-communication.shared-secret=hunter2\n"
    )
    (base / "jvm.config").write_text("-javaagent:/opt/jmx.jar=9404:/etc/jmx.yaml\n")
    out = tmp_path / "out"
    arguments = ["render", "trino", *ELSEWHERE, "--base", str(base)]
    assert run([*arguments, "-o", str(out)]) == 0
    said = capsys.readouterr()
    lines = said.err.splitlines()
    assert "    left out: query-manager.required-workers: 10 (the plan decides the number of " in (
        said.err
    )
    assert any(
        line.startswith("    -javaagent:/opt/jmx.jar: port 9404 -> 9405, ") for line in lines
    )
    assert f": atoll render trino --base '{tmp_path}/it'" in lines[-2]
    assert "hunter2" not in said.err and "max-run-time" not in said.err
    assert said.out == ""
    # All of it is on stdout with --diff.
    assert run([*arguments, "--diff"]) == 0
    assert "required-workers" not in capsys.readouterr().err


def test_an_engine_in_a_cache_that_its_user_cannot_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home = str(tmp_path / "atoll/engines/trino-server-476")
    monkeypatch.setattr(TrinoEngine, "locate", lambda self, host: Installation("476", home, "/j"))
    assert run(["render", "trino", "-o", str(tmp_path / "a"), "--user", "somebody-else"]) == 0
    assert f"atoll: {home} is in your own cache, which the user 'somebody-else'" in (
        capsys.readouterr().err
    )
    # Whoever asks, and has no name: a container's user.
    monkeypatch.delenv("LOGNAME", raising=False)
    monkeypatch.delenv("USER", raising=False)
    monkeypatch.setattr("os.geteuid", lambda: 987654)
    assert run(["render", "trino", "-o", str(tmp_path / "c"), "--user", "daemon"]) == 0
    assert "which the user 'daemon' may not" in capsys.readouterr().err
    monkeypatch.setattr("os.geteuid", lambda: pwd.getpwnam("daemon").pw_uid)
    assert run(["render", "trino", "-o", str(tmp_path / "d"), "--user", "daemon"]) == 0
    assert "your own cache" not in capsys.readouterr().err
    elsewhere = ("--user", "somebody-else", "--home", "/opt/trino")
    assert run(["render", "trino", "-o", str(tmp_path / "b"), *elsewhere]) == 0
    assert "your own cache" not in capsys.readouterr().err


def test_96_cores_and_512_gb_is_answered(capsys: Capture) -> None:
    text = "Package:2 NUMANode:1(memory=256GB) Core:48 PU:1"
    assert run(["render", "trino", "--synthetic", text, "--policy", "win", "--explain"]) == 0
    said = capsys.readouterr().out
    heap = re.search(
        r"worker-0/etc/jvm\.config.*?\n  -Xmx(\d+)m\n      a worker's heap is 75 %", said, re.S
    )
    assert heap is not None
    assert 100 << 10 < int(heap[1]) < 256 << 10
    assert "-XX:ActiveProcessorCount=48\n" in said


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["trino"], {"option": "-o"}),
        (["trino", "--diff"], {"option": "--base"}),
        (["trino", "-o", "x", "--user", "root"], {"option": "--user"}),
        (["duckdb", "--base", "/etc", "--diff"], {"engine": "duckdb"}),
        (["trino", "--base", "/nowhere/etc", "--diff"], {"path": "/nowhere/etc"}),
        (["greenplum", "--explain"], {"engine": "greenplum"}),
        (["greenplum", "-o", "x", "--explain"], {"engine": "greenplum"}),
        (["greenplum", "-o", "x", "--policy", "win", "--to", "systemd"], {"option": "--to"}),
        (["singlestore", "-o", "x", "--home", "/opt/s"], {"options": "--to, --home and --java"}),
        (["oracle", "-o", "x"], {"engine": "'oracle'"}),
        (["plan.json", "-o", "x", "-n", "2"], {"options": "--policy, -n, --listen"}),
        (["plan.json", "-o", "x", "--heap", "2GiB"], {"options": "--policy, -n, --listen"}),
        (["trino", *SMALL, "-o", "x", "--heap", "64GiB"], {"asked": "64 GiB", "most": "24 GiB"}),
        (["trino", *SMALL, "-o", "x", "--malloc", "jemalloc"], {"malloc": "jemalloc"}),
        (["trino", *SMALL, "-o", "x", "--thp", "never"], {"option": "--thp never"}),
        (["singlestore", *SMALL, "-o", "x", "--thp", "never"], {"engine": "singlestore"}),
        (["trino", "-o", "x", "--name", "a/b"], {"name": "'a/b'"}),
        (["trino", "-o", "x", "--user", "0"], {"account": "'0'"}),
        (["trino", "-o", "x", "--user", "x\nExecStartPre=/bin/sh"], {"option": "--user"}),
        (["trino", "-o", "x", "--at", "/srv/a\nb"], {"path": r"'/srv/a\nb'"}),
        (["trino", "-o", "x", "--to", "systemd", "--name", "a--b", *HOME], {"name": "a--b"}),
        (["trino", "-o", "x", "--to", "compose"], {"form": "--to compose"}),
        (["trino", "-o", "x", "--image", "db:1"], {"form": "--to native"}),
        (["trino", *SMALL, "-o", "x", *COMPOSE, "--user", "trino"], {"user": "--user trino"}),
        (["trino", "-o", "x", *COMPOSE, "--image", "a b"], {"image": "'a b'"}),
        (["trino", *SMALL, "-o", "x", *COMPOSE, "--name", "T"], {"name": "--name T"}),
        (["trino", "-o", "x", *COMPOSE, "--malloc", "jemalloc"], {"malloc": "jemalloc"}),
        (["trino", "-o", ".", *SMALL, *HOME], {"path": "{folder}"}),
        (["trino", "-o", "x", *WIDE, "--port-base", "64000"], TOO_HIGH),
        (["greenplum", "-o", "x", *WIDE, "--port-base", "64000"], TOO_HIGH),
        (
            ["singlestore", "-o", "x", "--port-base", "64000", *WIDE],
            {"option": "--port-base 64000"},
        ),
    ],
)
def test_what_cannot_be_is_refused(
    arguments: list[str],
    named: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["render", *arguments]) == 2
    fields = {name: value.format(folder=tmp_path) for name, value in named.items()}
    check_complaint(capsys.readouterr().err, **fields)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("engine", ["singlestore", "greenplum", "postgresql"])
def test_a_plan_whose_heaps_were_raised_by_hand_is_refused(
    engine: str, tmp_path: Path, capsys: Capture
) -> None:
    assert run(["render", engine, *ELSEWHERE, "--policy", "win", "-o", str(tmp_path / "in")]) == 0
    given = json.loads((tmp_path / "in" / "plan.json").read_text())
    given["slots"][0]["heap_bytes"] = 900 << 30
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(given))
    capsys.readouterr()
    assert run(["render", str(path), "-o", str(tmp_path / "out")]) == 2
    named = {"slot": "slot 0", "heap": "900 GiB of heap", "engine": engine}
    check_complaint(capsys.readouterr().err, **named)


def test_a_name_that_no_folder_can_have_is_told(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / ("x" * 300)
    assert run(["render", "trino", *ELSEWHERE, "-o", str(path)]) == 4
    complaint = capsys.readouterr().err.splitlines()[-1]
    assert str(tmp_path) in complaint and "File name too long" in complaint


def test_an_account_may_be_a_number(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(["render", "mariadb", *ELSEWHERE, "--user", "1001", "-o", str(out)]) == 0
    said = (out / "README.md").read_text()
    assert "\nchown -R 1001 /srv/there\n" in said
    assert "\nsudo -u '#1001' env " in said


def test_a_folder_that_is_gone_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert run(["render", "trino", *ELSEWHERE, "-o", "x"]) == 2
    check_complaint(capsys.readouterr().err)


def test_a_bench_takes_a_configuration_where_the_engine_can(capsys: Capture) -> None:
    assert run(["bench", "duckdb", "--base", "/etc"]) == 2
    check_complaint(capsys.readouterr().err, engine="duckdb")


def test_a_syntax_error_of_the_user_is_told_by_its_line(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "config.properties").write_text("coordinator=true\n]][[garbage\n")
    assert run(["render", "trino", "--base", str(tmp_path), "--diff"]) == 2
    check_complaint(capsys.readouterr().err, where=f"{tmp_path}/config.properties:2")


def test_pods_for_what_kubernetes_offers_to_pods_need_no_reserve(tmp_path: Path) -> None:
    resources = [
        {"name": "cpu", "capacity": "16", "allocatable": "15"},
        {"name": "memory", "capacity": "64Gi", "allocatable": "60Gi"},
    ]
    zone = {"name": "node-0", "type": "Node", "resources": resources}
    version = "topology.node.k8s.io/v1alpha2"
    found = {"apiVersion": version, "kind": "NodeResourceTopology", "zones": [zone]}
    machine, out = tmp_path / "node.json", tmp_path / "out"
    machine.write_text(json.dumps(found))
    options = ["--to", "k8s", *IMAGE, "--machine", str(machine), "--policy", "win", "-o", str(out)]
    assert run(["render", "spark", *options]) == 0
