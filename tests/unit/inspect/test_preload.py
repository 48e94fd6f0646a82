"""Whether a preload would serve a program: judged from its files, and from a process."""

from __future__ import annotations

import os
import shutil
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from atoll.host.local import LocalHost
from atoll.host.processes import Finished
from atoll.host.programs import ProgramFiles
from atoll.inspect.elf import DT_AUDIT, DT_DEPAUDIT, PT_DYNAMIC, PT_INTERP
from atoll.inspect.preload import effect_of, look_at_program
from atoll.schema.advice import PreloadEffect
from atoll.schema.inspection import MallocLook
from tests.parts.fake_host import FakeHost

# A 64-bit x86-64 program without segments: it names no dynamic linker.
STATIC = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack(
    "<HHIQQQIHHHHHH", 2, 62, 1, 0, 0, 0, 0, 64, 56, 0, 64, 0, 0
)
LIBC = MallocLook(preload=(), loaded=(), reached="libc.so.6")


def test_a_dynamic_program_is_served_and_its_files_are_read() -> None:
    found = look_at_program(LocalHost(), ProgramFiles("/bin/true"))
    assert found.preload.effect is PreloadEffect.EFFECTIVE and not found.openmp


def test_a_static_program_loads_nothing() -> None:
    host = FakeHost()
    host.blobs["/prog"] = STATIC
    assert look_at_program(host, ProgramFiles("/prog")).preload.effect is PreloadEffect.NONE


def test_a_program_with_rights_of_another_is_served_by_no_preload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "program"
    shutil.copy("/bin/true", program)
    program.chmod(0o4755)
    own = look_at_program(LocalHost(), ProgramFiles(str(program))).preload
    assert own.effect is PreloadEffect.EFFECTIVE, "the right of its own user is none more"
    monkeypatch.setattr(os, "getuid", lambda: program.stat().st_uid + 1)
    found = look_at_program(LocalHost(), ProgramFiles(str(program))).preload
    assert found.effect is PreloadEffect.NONE and "setuid" in found.why


def test_a_script_is_its_interpreter(tmp_path: Path) -> None:
    script = tmp_path / "script"
    for first in ("/bin/sh -e", "/usr/bin/env sh", "/usr/bin/env -S LC_ALL=C sh -e"):
        script.write_text(f"#!{first}\n")
        found = look_at_program(LocalHost(), ProgramFiles(str(script))).preload
        assert found.effect is PreloadEffect.EFFECTIVE and "sh" in found.why


@pytest.mark.parametrize(
    "content", ["#!\n", "#!/usr/bin/env\n", "#!/usr/bin/env no-such-interpreter\n", "text"]
)
def test_what_cannot_be_read_is_unknown(content: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text(content)
    for path in (str(file), str(tmp_path / "missing")):
        found = look_at_program(LocalHost(), ProgramFiles(path)).preload
        assert found.effect is PreloadEffect.UNKNOWN and found.why


def test_a_preload_that_the_linker_does_not_load_has_no_effect(tmp_path: Path) -> None:
    library = tmp_path / "libjemalloc.so.2"
    library.write_text("not a library")
    program = ProgramFiles(sys.executable)
    found = look_at_program(LocalHost(), program, library=str(library))
    assert found.preload.effect is PreloadEffect.NONE and str(library) in found.preload.why


LINKER = "/lib64/ld-linux-x86-64.so.2"


def dynamic(linker: str, *tags: int) -> bytes:
    """The same with a dynamic linker, and with these tags in its dynamic section."""
    parts = [f"{linker}\0".encode(), b"".join(struct.pack("<qQ", tag, 0) for tag in (*tags, 0))]
    at, headers = 64 + 2 * 56, []
    for kind, part in zip((PT_INTERP, PT_DYNAMIC), parts, strict=True):
        headers.append(struct.pack("<IIQQQQQQ", kind, 4, at, at, at, len(part), len(part), 1))
        at += len(part)
    table = struct.pack("<Q", 64), struct.pack("<H", len(headers))
    head = STATIC[:32] + table[0] + STATIC[40:56] + table[1] + STATIC[58:]
    return b"".join([head, *headers, *parts])


def host_of(program: bytes, listed: str = "") -> tuple[FakeHost, list[str]]:
    """With the program as /prog, and a linker that lists this, or fails; and what was run."""
    ran: list[str] = []

    def on_run(argv: Sequence[str]) -> Finished:
        ran.append(argv[0])
        return Finished(0 if listed else 127, listed, "")

    host = FakeHost(on_run=on_run)
    host.blobs["/prog"] = program
    return host, ran


@pytest.mark.parametrize(
    "linker", ["/tmp/ld-linux-x86-64.so.2", "/lib64/../tmp/ld-linux-x86-64.so.2", f"{LINKER}/x"]
)
def test_a_linker_of_the_programs_own_is_not_run(linker: str) -> None:
    host, ran = host_of(dynamic(linker), "  /lib/libc.so.6 (0x1)\n")
    found = look_at_program(host, ProgramFiles("/prog")).preload
    assert found.effect is PreloadEffect.UNKNOWN and linker in found.why and ran == []


@pytest.mark.parametrize("tag", [DT_AUDIT, DT_DEPAUDIT])
def test_no_program_is_listed_whose_audit_would_run(tag: int) -> None:
    host, ran = host_of(dynamic(LINKER, tag), "  /lib/libc.so.6 (0x1)\n")
    found = look_at_program(host, ProgramFiles("/prog")).preload
    assert found.effect is PreloadEffect.UNKNOWN and "audit" in found.why and ran == []


def test_a_program_whose_libraries_are_not_found_is_unknown() -> None:
    for listed, effect in (
        ("", PreloadEffect.UNKNOWN),
        ("\t/lib/libc.so.6 (0x1)\n", PreloadEffect.EFFECTIVE),
    ):
        host, ran = host_of(dynamic(LINKER), listed)
        assert look_at_program(host, ProgramFiles("/prog")).preload.effect is effect
        assert ran == [LINKER]


@pytest.mark.parametrize(
    ("look", "jvm", "effect"),
    [
        (LIBC, False, PreloadEffect.EFFECTIVE),
        (LIBC, True, PreloadEffect.PARTIAL),
        (LIBC.model_copy(update={"reached": "prog"}), False, PreloadEffect.NONE),
        (LIBC.model_copy(update={"reached": None, "unknown": "?"}), False, PreloadEffect.UNKNOWN),
        (
            LIBC.model_copy(update={"exceptions": {"liba.so": "its own jemalloc"}}),
            False,
            PreloadEffect.PARTIAL,
        ),
        (
            LIBC.model_copy(update={"preload_faults": {"/x/libjemalloc.so.2": "no such file"}}),
            False,
            PreloadEffect.NONE,
        ),
        (
            MallocLook(
                preload=("libjemalloc.so.2",),
                loaded=("libjemalloc.so.2",),
                reached="libjemalloc.so.2",
            ),
            False,
            PreloadEffect.EFFECTIVE,
        ),
    ],
)
def test_the_effect_in_a_process(look: MallocLook, jvm: bool, effect: PreloadEffect) -> None:
    found = effect_of(look, jvm=jvm)
    assert found.effect is effect and found.why
