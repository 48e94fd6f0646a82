"""A Java program that says 'ready' and sleeps, for tests: its class file, written by hand.

A JRE has no compiler, so the bytes are assembled here after chapter 4 of "The Java Virtual
Machine Specification", in format 50, which needs no stack maps: any Java from 6 on runs it.
"""

from __future__ import annotations

import struct
from pathlib import Path

NAME = "Sleeper"
_UTF8, _LONG, _CLASS, _STRING, _FIELD, _METHOD, _NAME_AND_TYPE = 1, 5, 7, 8, 9, 10, 12


class _Pool:
    """The constant pool: each entry once, numbered from 1."""

    def __init__(self) -> None:
        self.entries: dict[bytes, int] = {}
        self.next = 1

    def add(self, tag: int, content: bytes) -> int:
        entry = bytes([tag]) + content
        if entry not in self.entries:
            self.entries[entry] = self.next
            self.next += 2 if tag == _LONG else 1  # a long takes two numbers
        return self.entries[entry]

    def text(self, text: str) -> int:
        return self.add(_UTF8, struct.pack(">H", len(text)) + text.encode())

    def class_(self, name: str) -> int:
        return self.add(_CLASS, struct.pack(">H", self.text(name)))

    def member(self, tag: int, owner: str, name: str, kind: str) -> bytes:
        named = self.add(_NAME_AND_TYPE, struct.pack(">HH", self.text(name), self.text(kind)))
        return struct.pack(">H", self.add(tag, struct.pack(">HH", self.class_(owner), named)))


def class_file(milliseconds: int = 600_000) -> bytes:
    """`System.out.println("ready"); Thread.sleep(milliseconds);`"""
    pool = _Pool()
    ready = pool.add(_STRING, struct.pack(">H", pool.text("ready")))
    code = (
        b"\xb2"  # getstatic
        + pool.member(_FIELD, "java/lang/System", "out", "Ljava/io/PrintStream;")
        + bytes([0x12, ready])  # ldc
        + b"\xb6"  # invokevirtual
        + pool.member(_METHOD, "java/io/PrintStream", "println", "(Ljava/lang/String;)V")
        + b"\x14"  # ldc2_w
        + struct.pack(">H", pool.add(_LONG, struct.pack(">q", milliseconds)))
        + b"\xb8"  # invokestatic
        + pool.member(_METHOD, "java/lang/Thread", "sleep", "(J)V")
        + b"\xb1"  # return
    )
    body = struct.pack(">HHI", 2, 1, len(code)) + code + struct.pack(">HH", 0, 0)
    method = struct.pack(
        ">HHHHHI",
        0x9,  # public static
        pool.text("main"),
        pool.text("([Ljava/lang/String;)V"),
        1,
        pool.text("Code"),
        len(body),
    )
    classes = struct.pack(">HHH", 0x21, pool.class_(NAME), pool.class_("java/lang/Object"))
    constants = b"".join(pool.entries)
    return (
        struct.pack(">IHHH", 0xCAFEBABE, 0, 50, pool.next)
        + constants
        + classes
        + struct.pack(">HHH", 0, 0, 1)  # no interfaces, no fields, one method
        + method
        + body
        + struct.pack(">H", 0)
    )


def write_program(folder: Path) -> list[str]:
    """The program in `folder`; returns java's arguments that run it."""
    (folder / f"{NAME}.class").write_bytes(class_file())
    return ["-cp", str(folder), NAME]
