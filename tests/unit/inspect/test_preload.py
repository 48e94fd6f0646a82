"""Whether a preload would serve a program: judged from its files, and from a process."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

from atoll.host.local import LocalHost
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
    found = look_at_program(LocalHost(), "/bin/true")
    assert found.preload.effect is PreloadEffect.EFFECTIVE and not found.openmp


def test_a_static_program_loads_nothing() -> None:
    host = FakeHost()
    host.blobs["/prog"] = STATIC
    assert look_at_program(host, "/prog").preload.effect is PreloadEffect.NONE


def test_a_script_is_its_interpreter(tmp_path: Path) -> None:
    script = tmp_path / "script"
    for first in ("/bin/sh -e", "/usr/bin/env sh"):
        script.write_text(f"#!{first}\n")
        found = look_at_program(LocalHost(), str(script)).preload
        assert found.effect is PreloadEffect.EFFECTIVE and "sh" in found.why


@pytest.mark.parametrize("content", ["#!\n", "#!/usr/bin/env no-such-interpreter\n", "text"])
def test_what_cannot_be_read_is_unknown(content: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text(content)
    for path in (str(file), str(tmp_path / "missing")):
        found = look_at_program(LocalHost(), path).preload
        assert found.effect is PreloadEffect.UNKNOWN and found.why


def test_a_preload_that_the_linker_does_not_load_has_no_effect(tmp_path: Path) -> None:
    library = tmp_path / "libjemalloc.so.2"
    library.write_text("not a library")
    found = look_at_program(LocalHost(), sys.executable, library=str(library))
    assert found.preload.effect is PreloadEffect.NONE and str(library) in found.preload.why


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
