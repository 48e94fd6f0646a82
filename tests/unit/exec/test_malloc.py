"""atoll-exec --malloc: what LD_PRELOAD then holds."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.parts.exec import EXEC, refused, run

ALLOCATORS = {
    "jemalloc": ("libjemalloc.so.2", "libjemalloc2"),
    "tcmalloc": ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
    "mimalloc": ("libmimalloc.so.2", "libmimalloc2.0"),
    "tbbmalloc": ("libtbbmalloc_proxy.so.2", "libtbbmalloc2"),
}


@pytest.mark.parametrize("name", ALLOCATORS)
def test_malloc_prepends_to_what_the_user_has(tmp_path: Path, name: str) -> None:
    library = tmp_path / ALLOCATORS[name][0]
    shutil.copyfile(a_shared_library(), library)
    env = {"LD_LIBRARY_PATH": str(tmp_path), "LD_PRELOAD": ""}
    assert preload_of(EXEC, "--malloc", name, env=env) == str(library)
    theirs = a_shared_library()
    env["LD_PRELOAD"] = theirs
    assert preload_of(EXEC, f"--malloc={name}", env=env) == f"{library}:{theirs}"


def a_shared_library() -> str:
    """Some real shared library, harmless to preload."""
    with Path("/proc/self/maps").open() as maps:
        return next(line.split()[-1] for line in maps if "/libc.so.6" in line)


def preload_of(*argv: str, env: Mapping[str, str]) -> str | None:
    done = run(*argv, "env", env=env)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("LD_PRELOAD=")]
    return lines[0].removeprefix("LD_PRELOAD=") if lines else None


@pytest.mark.parametrize("name", ALLOCATORS)
def test_malloc_as_installed_here(name: str) -> None:
    library, package = ALLOCATORS[name]
    known = run("/sbin/ldconfig", "-p").stdout
    if f"\t{library} " in known:
        found = preload_of(EXEC, "--malloc", name, env={"LD_PRELOAD": ""})
        assert found is not None
        assert Path(found).name == library
    elif name != "tcmalloc" or "\tlibtcmalloc.so.4 " not in known:
        line = refused("--malloc", name, "true")
        assert f"install the package {package}" in line


def test_malloc_skips_what_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "libtbbmalloc_proxy.so.2").write_text("not ELF")
    done = run(
        EXEC, "--malloc", "tbbmalloc", "--dry-run", "true", env={"LD_LIBRARY_PATH": str(tmp_path)}
    )
    assert str(tmp_path) not in done.stdout


def test_malloc_system_removes_known_preloads(tmp_path: Path) -> None:
    ours = tmp_path / "libjemalloc.so.2"
    shutil.copyfile(a_shared_library(), ours)
    theirs = a_shared_library()
    mixed = {"LD_PRELOAD": f"{ours}:{theirs}"}
    assert preload_of(EXEC, "--malloc", "system", env=mixed) == theirs
    assert preload_of(EXEC, "--malloc", "system", env={"LD_PRELOAD": str(ours)}) is None
