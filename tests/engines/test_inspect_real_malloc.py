"""Whose malloc real processes reach: preloads that work, and all the ways in which they do not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atoll.engines.duckdb.engine import DuckDBEngine
from atoll.host.local import LocalHost
from atoll.host.programs import ProgramFiles
from atoll.inspect.malloc import MallocFiles, look_at_malloc
from atoll.inspect.preload import effect_of, look_at_program
from atoll.schema.advice import PreloadEffect
from atoll.schema.inspection import MallocLook
from atoll.store.paths import cache_dir
from tests.parts.downloads import fetched
from tests.parts.live_process import live

LIBRARIES = {
    "libjemalloc.so.2": "libjemalloc2",
    "libmimalloc.so.2": "libmimalloc2.0",
    "libtcmalloc_minimal.so.4": "libtcmalloc-minimal4",
    "libtbbmalloc_proxy.so.2": "libtbbmalloc2",
}
PYTHON = [sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(600)"]
SAY_READY = "#include <cstdio>\n#include <cstdlib>\n#include <unistd.h>\n"
WAIT = 'void* volatile p = malloc(9); free(p); puts("ready"); fflush(stdout); pause();'
# It keeps what it is given back: that may come from another allocator.
OWN_MALLOC = """extern "C" {
void* __libc_malloc(size_t);
void* malloc(size_t n) { return __libc_malloc(n); }
void free(void*) {}
}
"""


@pytest.fixture(scope="session")
def allocators(root: Path) -> Path:
    """The folder of the libraries: Debian's, unpacked into the cache."""
    into = cache_dir("test-allocators")
    argv = [sys.executable, "-m", "tools.fetch_deb", *LIBRARIES.values(), "--into", str(into)]
    fetched(lambda: subprocess.run(argv, cwd=root, capture_output=True, text=True, timeout=1200))
    (found,) = {path.parent for path in Path(into).rglob("libjemalloc.so.2")}
    return found


def compiled(source: str, to: Path, *flags: str) -> str:
    code = to.with_suffix(".cpp")
    code.write_text(source)
    subprocess.run(["g++", "-o", to, code, *flags], check=True)
    return str(to)


def look(argv: list[str], folder: Path, preload: str = "", libraries: str = "") -> MallocLook:
    env = {"LD_PRELOAD": preload, "LD_LIBRARY_PATH": libraries}
    with live(argv, folder / "out", env=env) as pid:
        return look_at_malloc(LocalHost(), pid)


def test_an_ordinary_process_reaches_libc(tmp_path: Path) -> None:
    found = look(PYTHON, tmp_path)
    assert (found.reached, found.loaded, found.preload_faults) == ("libc.so.6", (), {})


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_preload_that_works(allocators: Path, library: str, tmp_path: Path) -> None:
    preload = str(allocators / library)
    found = look(PYTHON, tmp_path, preload, str(allocators))
    assert found.reached == library
    assert found.loaded[0] == library
    assert (found.preload, found.preload_faults) == ((preload,), {})
    assert "libc.so.6" not in found.exceptions.values()


def test_tbbmalloc_without_its_proxy_changes_nothing(allocators: Path, tmp_path: Path) -> None:
    preload = str(allocators / "libtbbmalloc.so.2")
    found = look(PYTHON, tmp_path, preload)
    assert (found.reached, found.loaded) == ("libc.so.6", ("libtbbmalloc.so.2",))
    assert "libtbbmalloc_proxy.so.2" in found.preload_faults[preload]


def test_of_two_preloads_the_first_is_reached(allocators: Path, tmp_path: Path) -> None:
    first, second = str(allocators / "libmimalloc.so.2"), str(allocators / "libjemalloc.so.2")
    found = look(PYTHON, tmp_path, f"{first}:{second}")
    assert found.reached == "libmimalloc.so.2"
    assert found.preload_faults == {second: "libmimalloc.so.2 comes before it"}


def test_preloads_that_are_not_loaded(tmp_path: Path) -> None:
    foreign, text = tmp_path / "foreign.so", tmp_path / "text.so"
    other = {62: 183, 183: 62}  # x86-64 for aarch64 and the reverse
    head = bytearray(Path(sys.executable).read_bytes()[:64])
    head[18] = other[head[18]]
    head[56:58] = b"\0\0"  # no segments
    foreign.write_bytes(bytes(head))
    text.write_text("not a library " * 9)
    found = look(PYTHON, tmp_path, f"{foreign} {text} /no/such.so nowhere.so")
    assert found.reached == "libc.so.6"
    assert "the program for" in found.preload_faults[str(foreign)]
    assert found.preload_faults[str(text)] == "is not an ELF file"
    assert found.preload_faults["/no/such.so"] == "no such file"
    assert found.preload_faults["nowhere.so"] == "the dynamic linker did not find it"


@pytest.mark.parametrize("how", ["-static", "-static-pie"])
def test_a_static_program_preloads_nothing(how: str, tmp_path: Path) -> None:
    program = compiled(f"{SAY_READY}int main() {{ {WAIT} }}", tmp_path / "alone", how)
    found = look([program], tmp_path, "/usr/lib/libjemalloc.so.2")
    assert (found.reached, found.loaded) == ("alone", ())
    assert "statically linked" in found.preload_faults["/usr/lib/libjemalloc.so.2"]


def test_a_program_with_its_own_malloc_comes_first(allocators: Path, tmp_path: Path) -> None:
    source = f"{SAY_READY}{OWN_MALLOC}int main() {{ {WAIT} }}"
    preload = str(allocators / "libjemalloc.so.2")
    found = look([compiled(source, tmp_path / "own")], tmp_path, preload)
    assert found.reached == "own"
    assert "comes first" in found.preload_faults[preload]


@pytest.mark.parametrize(
    "flags",
    [
        ("-no-pie", "-fno-pie"),  # malloc's address is the program's PLT entry
        ("-pie", "-fPIE", "-Wl,-z,lazy"),
        ("-pie", "-fPIE", "-Wl,-z,now"),
        ("-fno-plt", "-Wl,--hash-style=sysv"),
    ],
)
def test_programs_of_every_make(allocators: Path, flags: tuple[str, ...], tmp_path: Path) -> None:
    taken = f"void* (*volatile f)(size_t) = malloc; f(1); {WAIT}"
    program = compiled(f"{SAY_READY}int main() {{ {taken} }}", tmp_path / "made", *flags)
    assert look([program], tmp_path).reached == "libc.so.6"
    found = look([program], tmp_path, str(allocators / "libjemalloc.so.2"))
    assert (found.reached, found.exceptions) == ("libjemalloc.so.2", {})


def test_a_plugin_that_binds_deep_is_named(allocators: Path, tmp_path: Path) -> None:
    plugin = compiled(
        '#include <cstdlib>\nextern "C" void* get() { return malloc(5); }',
        tmp_path / "plugin.so",
        "-shared",
        "-fPIC",
    )
    source = f"""#include <dlfcn.h>\n{SAY_READY}
    int main() {{
        void* plugin = dlopen("{plugin}", RTLD_NOW | RTLD_DEEPBIND);
        ((void* (*)())dlsym(plugin, "get"))();
        {WAIT}
    }}"""
    program = compiled(source, tmp_path / "deep")
    found = look([program], tmp_path, str(allocators / "libmimalloc.so.2"))
    assert found.reached == "libmimalloc.so.2"
    assert found.exceptions["plugin.so"] == "libc.so.6"


def test_duckdb_brings_its_own(allocators: Path, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    argv = [sys.executable, "-c", f"import duckdb\n{PYTHON[2]}"]
    found = look(argv, tmp_path, str(allocators / "libjemalloc.so.2"))
    assert found.reached == "libjemalloc.so.2"
    (own,) = (where for name, where in found.exceptions.items() if name.startswith("_duckdb"))
    assert own == "its own jemalloc (duckdb_je_malloc)"


def test_a_program_run_by_its_linker(tmp_path: Path) -> None:
    maps = Path("/proc/self/maps").read_text().split()
    linker = next(word for word in maps if "/ld-linux" in word)
    found = look([linker, *PYTHON], tmp_path)
    assert (found.reached, found.unknown) == ("libc.so.6", "")


class Unprivileged(LocalHost):
    """An ordinary user's view: the links of map_files are not for him."""

    def read_bytes(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes:
        if "/map_files/" in path:
            raise PermissionError(1, "not permitted", path)
        return super().read_bytes(path, offset=offset, size=size)


def test_a_library_that_was_replaced_on_disk(allocators: Path, tmp_path: Path) -> None:
    library = tmp_path / "libjemalloc.so.2"
    shutil.copyfile(allocators / "libjemalloc.so.2", library)
    with live(PYTHON, tmp_path / "out", env={"LD_PRELOAD": str(library)}) as pid:
        assert look_at_malloc(Unprivileged(), pid).reached == library.name
        library.unlink()
        library.write_text("another")
        for host in (LocalHost(), Unprivileged()):
            found = look_at_malloc(host, pid)
            assert (found.reached, found.preload_faults) == (library.name, {})


class Counting(LocalHost):
    """Counts the reads of files that are mapped."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def read_bytes(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes:
        self.reads += path.split("/")[3] in ("map_files", "root")
        return super().read_bytes(path, offset=offset, size=size)


def test_processes_that_share_files_have_them_read_once(allocators: Path, tmp_path: Path) -> None:
    library = tmp_path / "libjemalloc.so.2"
    shutil.copyfile(allocators / library.name, library)
    env = {"LD_PRELOAD": str(library)}
    host = Counting()
    files = MallocFiles(host)
    with live(PYTHON, tmp_path / "one", env=env) as one:
        first = look_at_malloc(host, one, files)
        assert host.reads > 0
        host.reads = 0
        with live(PYTHON, tmp_path / "two", env=env) as two:
            assert look_at_malloc(host, two, files) == first
            assert host.reads == 0
        library.unlink()
        shutil.copyfile(allocators / "libtbbmalloc.so.2", library)  # no malloc in it
        with live(PYTHON, tmp_path / "three", env=env) as three:
            assert look_at_malloc(host, three, files).reached == "libc.so.6"
            assert host.reads > 0
        assert look_at_malloc(host, one, files) == first


class Damaged(LocalHost):
    """Memory that changes under the reader: at regular distances a byte is wrong."""

    def __init__(self, step: int, mask: int) -> None:
        super().__init__()
        self.step, self.mask, self.reads = step, mask, 0

    def read_bytes(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes:
        found = super().read_bytes(path, offset=offset, size=size)
        self.reads += 1
        if not path.endswith(("/mem", "/auxv")):
            return found
        return bytes(
            byte ^ self.mask if (offset + i) % self.step == self.reads % self.step else byte
            for i, byte in enumerate(found)
        )


@pytest.fixture(scope="module")
def sleeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with live(PYTHON, tmp_path_factory.mktemp("sleeper") / "out") as pid:
        yield pid


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(step=st.integers(1, 5000), mask=st.integers(1, 255))
def test_memory_that_makes_no_sense(sleeper: int, step: int, mask: int) -> None:
    host = Damaged(step, mask)
    found = look_at_malloc(host, sleeper)
    assert found.reached is not None or found.unknown
    assert host.reads < 100_000


@pytest.mark.parametrize(
    ("program", "effect"),
    [
        ("python", PreloadEffect.EFFECTIVE),
        ("own", PreloadEffect.NONE),
        ("static", PreloadEffect.NONE),
        ("duckdb", PreloadEffect.PARTIAL),
    ],
)
def test_what_a_preload_will_change_is_known_before_the_start(
    program: str, effect: PreloadEffect, allocators: Path, tmp_path: Path
) -> None:
    """The forecast from the files is what the process with the preload then shows."""
    library = str(allocators / "libjemalloc.so.2")
    libraries: tuple[str, ...] = ()
    if program == "python":
        argv = PYTHON
    elif program == "duckdb":
        argv = [*PYTHON[:2], f"import duckdb; {PYTHON[2]}"]
        libraries = DuckDBEngine().malloc_files(LocalHost()).libraries
    else:
        source = SAY_READY + (OWN_MALLOC if program == "own" else "") + f"int main() {{ {WAIT} }}"
        argv = [compiled(source, tmp_path / program, *["-static"] * (program == "static"))]
    files = ProgramFiles(argv[0], libraries)
    forecast = look_at_program(LocalHost(), files, library=library).preload
    assert forecast.effect is effect, forecast
    assert effect_of(look(argv, tmp_path, preload=library), jvm=False).effect is effect


@pytest.mark.parametrize("how", ["linker", "audit"])
def test_nothing_that_a_program_names_is_run(how: str, tmp_path: Path) -> None:
    """As ldd(1) warns: a program can name its own dynamic linker, and libraries that audit it."""
    ran = tmp_path / "ran"
    if how == "linker":
        own = tmp_path / "ld-linux-x86-64.so.2"
        own.write_text(f"#!/bin/sh\ntouch {ran}\n")
        own.chmod(0o755)
        flag = f"-Wl,--dynamic-linker={own}"
    else:
        source = f"""#include <fcntl.h>
            extern "C" unsigned la_version(unsigned v) {{ creat("{ran}", 0600); return v; }}"""
        flag = f"-Wl,--audit={compiled(source, tmp_path / 'audit.so', '-shared', '-fPIC')}"
    program = compiled("int main() {}", tmp_path / "program", flag)
    found = look_at_program(LocalHost(), ProgramFiles(program)).preload
    assert found.effect is PreloadEffect.UNKNOWN and not ran.exists(), found
