"""The wheel, built as `pip install .` builds it and used far from the checkout.

The environment holds what the wheel declares and nothing else, at the lock's versions and
hashes, so a dependency that is used but not declared shows here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from tools.lock_subset import subset


def run(*argv: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command as a user would start it: nothing of the checkout in its environment."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return subprocess.run(
        argv, cwd=cwd, env=kept | variables, capture_output=True, text=True, timeout=1800
    )


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built wheel."""
    out = tmp_path_factory.mktemp("dist")
    pip = (sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps")
    done = run(*pip, "--wheel-dir", out, root, cwd=out)
    assert done.returncode == 0, done.stdout + done.stderr
    [found] = out.glob("atoll-*.whl")
    return found


@pytest.fixture(scope="module")
def bin_dir(wheel: Path, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of an environment with the wheel and its declared dependencies."""
    folder = tmp_path_factory.mktemp("env")
    venv.create(folder, with_pip=True)
    declared = tomllib.loads((root / "pyproject.toml").read_text())["project"]["dependencies"]
    names = [line.split(">")[0].split("=")[0].split("<")[0] for line in declared]
    pins = folder / "pins.txt"
    pins.write_text(subset((root / "requirements.lock").read_text(), names))
    pip = (folder / "bin/python", "-m", "pip", "install", "--quiet")
    for arguments in (("--require-hashes", "-r", pins), ("--no-deps", wheel)):
        done = run(*pip, *arguments, cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr
    checked = run(folder / "bin/python", "-m", "pip", "check", cwd=folder)
    assert checked.returncode == 0, checked.stdout
    return folder / "bin"


def test_the_data_files_of_the_package_are_in_the_wheel(wheel: Path, root: Path) -> None:
    """Among them the dialects of engines: without them, texts would stay unchanged."""
    suffixes = (".toml", ".md", ".sh")
    sources = [path for path in (root / "src/atoll").rglob("*") if path.suffix in suffixes]
    wanted = {str(path.relative_to(root / "src")) for path in sources}
    assert "atoll/engines/spark/dialects/tpcds.toml" in wanted
    with zipfile.ZipFile(wheel) as archive:
        assert wanted <= set(archive.namelist())


def test_atoll_reads_this_machine(bin_dir: Path, tmp_path: Path) -> None:
    done = run(bin_dir / "atoll", "topo", "--json", cwd=tmp_path, HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["summary"]["pus"] >= 1


@pytest.mark.parametrize("place", [(), ("core:0",)], ids=["flags", "place"])
def test_atoll_exec_runs(bin_dir: Path, tmp_path: Path, place: tuple[str, ...]) -> None:
    """A place makes it load the topology library, which lies in the package's folder."""
    done = run(bin_dir / "atoll-exec", "--dry-run", *place, "--", "true", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_atoll_probe_runs(bin_dir: Path, tmp_path: Path) -> None:
    done = run(bin_dir / "atoll-probe", "--version", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("atoll-probe ")


def test_atoll_workload_runs(bin_dir: Path, tmp_path: Path) -> None:
    """It loads the topology library from the package's folder."""
    small = ("--scheduler", "atoll", "--records", "1000", "--runs", "1")
    done = run(bin_dir / "atoll-workload", "w1", *small, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["answer"]["rows"] == 10


def test_atoll_kernels_runs_with_its_own_schedulers(bin_dir: Path, tmp_path: Path) -> None:
    """A wheel has neither OpenMP's library nor oneTBB's."""
    small = ("gups", "--table-mib", "1", "--runs", "1", "--scheduler")
    for scheduler in ("atoll", "os", "async"):
        done = run(bin_dir / "atoll-kernels", *small, scheduler, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["scheduler"] == scheduler
    for scheduler in ("openmp", "tbb"):
        done = run(bin_dir / "atoll-kernels", *small, scheduler, cwd=tmp_path)
        assert done.returncode == 2 and done.stderr.count("\n") == 1
        assert f"--scheduler {scheduler}: this build has none" in done.stderr


def test_atoll_sharedplan_runs(bin_dir: Path, tmp_path: Path) -> None:
    small = ("--scale", "0.0001", "--browsers", "4", "--seconds", "1")
    done = run(bin_dir / "atoll-sharedplan", *small, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verified"] > 0


def test_the_plugin_of_qemu_lies_apart_with_its_licence(bin_dir: Path, tmp_path: Path) -> None:
    """The guest finds both without a checkout."""
    found = "from atoll.guest import native; print(native.plugin(), native.fills(), sep='\\n')"
    done = run(bin_dir / "python", "-c", found, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    plugin, fills = map(Path, done.stdout.split())
    assert plugin.parent.name == "cachesim" and fills == bin_dir / "atoll-fills"
    assert sorted(path.name for path in plugin.parent.iterdir()) == ["COPYING", plugin.name]
    assert "GNU GENERAL PUBLIC LICENSE" in (plugin.parent / "COPYING").read_text()


def test_atoll_fills_runs(bin_dir: Path, tmp_path: Path) -> None:
    """Outside of a guest, where it can only say so."""
    done = run(bin_dir / "atoll-fills", "read", cwd=tmp_path)
    assert done.returncode == 2 and "no board" in done.stderr


@pytest.mark.parametrize("command", ["topo", "plan", "up", "verify", "bench", "report", "demo"])
def test_every_command_loads(bin_dir: Path, tmp_path: Path, command: str) -> None:
    """With no engine installed, help must still come: engines are extras."""
    done = run(bin_dir / "atoll", command, "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Example" in done.stdout or "example" in done.stdout


ON_WORKERS = """
import atoll.duckdb

with atoll.duckdb.connect("sums.duckdb", workers=2) as con:
    print(con.execute("select sum(range) from range(1000000)").fetchall())
    print([seat.role for seat in con.atoll.threads()], len(con.atoll.profile().queries))
"""


def test_duckdb_runs_on_workers(bin_dir: Path, root: Path, tmp_path: Path) -> None:
    """DuckDB, at the lock's version, lies beside the environment that others use without it."""
    pins, beside = tmp_path / "pins.txt", tmp_path / "beside"
    pins.write_text(subset((root / "requirements.lock").read_text(), ["duckdb"]))
    pip = (bin_dir / "python", "-m", "pip", "install", "--quiet", "--require-hashes")
    done = run(*pip, "-r", pins, "--target", beside, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    done = run(bin_dir / "python", "-c", ON_WORKERS, cwd=tmp_path, PYTHONPATH=str(beside))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[(499999500000,)]\n['worker'] 1\n"
