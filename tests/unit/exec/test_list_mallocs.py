"""atoll-exec --list-mallocs: a library in LD_LIBRARY_PATH that --malloc would take is listed."""

from __future__ import annotations

from pathlib import Path

from tests.parts.exec import EXEC, run


def test_what_malloc_would_take_is_listed(tmp_path: Path) -> None:
    library = tmp_path / "libjemalloc.so.2"
    # Any ELF file of this architecture is loadable to the search.
    library.write_bytes(Path(EXEC).read_bytes()[:4096])
    done = run(EXEC, "--list-mallocs", env={"LD_LIBRARY_PATH": str(tmp_path)})
    assert done.returncode == 0 and done.stderr == ""
    assert f"jemalloc\t{library}" in done.stdout.splitlines()


def test_a_file_that_cannot_be_loaded_is_not_listed(tmp_path: Path) -> None:
    library = tmp_path / "libjemalloc.so.2"
    library.write_text("no library")
    done = run(EXEC, "--list-mallocs", env={"LD_LIBRARY_PATH": str(tmp_path)})
    assert done.returncode == 0
    assert str(library) not in done.stdout


def test_an_empty_list_is_explained() -> None:
    done = run(EXEC, "--list-mallocs")
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    # Which is the case depends on what is installed here.
    if done.stdout:
        assert not lines
    else:
        assert len(lines) == 1
        assert lines[0].startswith("atoll-exec: no allocator that --malloc knows is installed")
