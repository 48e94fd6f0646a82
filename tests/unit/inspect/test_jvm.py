"""A JVM's answers as values, and the JVMs that must not be asked because it could harm them."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.host.jvm_attach import Target, look, parse_answer, refusal, request
from atoll.inspect.jvm import (
    Flag,
    look_at_jvm,
    parse_arguments,
    parse_flags,
    parse_processors,
    parse_version,
    summarize,
)
from tests.parts.fake_host import FakeHost

# Lines of OpenJDK 17 as it printed them.
FLAGS = """[Global flags]
      int ActiveProcessorCount                     = -1                                        {product} {default}
ccstrlist AOTModulePath                            =                                        {diagnostic} {default}
   size_t MaxHeapSize                              = 67108864                                  {product} {command line}
   size_t SoftMaxHeapSize                          = 67108864                               {manageable} {ergonomic}
     bool UseG1GC                                  = false                                     {product} {default}
     bool UseLargePages                            = false                                  {pd product} {default}
     bool UseNUMA                                  = false                                     {product} {command line}
     bool UseParallelGC                            = true                                      {product} {command line}
     bool UseTransparentHugePages                  = true                                      {product} {environment}
"""  # noqa: E501
FLAGS_8 = """[Global flags]
    uintx MaxHeapSize                              := 1048576000                          {product}
     bool UseNUMA                                  := true                                {product}
     bool UseParallelGC                            := true                                {product}
"""
VERSION = "OpenJDK 64-Bit Server VM version 17.0.15+6-Debian-1deb12u1\nJDK 17.0.15\n"
COMMAND_LINE = """VM Arguments:
jvm_args: -Xmx64m -XX:-UseNUMA -XX:+UseNUMA
java_command: Sleeper
"""
INFO = """active_processor_count: 2, but overridden by -XX:ActiveProcessorCount 3

CPU: total 2 (initial active 3) (2 cores per cpu, 1 threads per core) family 6
"""


def test_flags_have_a_value_and_an_origin() -> None:
    flags = parse_flags(FLAGS)
    assert flags["MaxHeapSize"] == Flag("67108864", "command line")
    assert flags["UseLargePages"] == Flag("false", "default")
    assert flags["AOTModulePath"] == Flag("", "default")
    assert len(flags) == 9
    assert parse_flags(FLAGS_8)["UseNUMA"] == Flag("true", "")


def test_looks_at_a_jvm() -> None:
    host = FakeHost({"/proc/7/maps": "7f00-7f01 r-xp 0 0:1 5    /opt/jdk/lib/server/libjvm.so\n"})
    host.jvm_answers = {
        (7, "VM.flags -all"): FLAGS,
        (7, "VM.version"): VERSION,
        (7, "VM.command_line"): COMMAND_LINE,
        (7, "VM.info"): INFO,
    }
    found = look_at_jvm(host, 7)
    assert found is not None
    assert found.version == "17.0.15+6-Debian-1deb12u1"
    assert (found.use_numa, found.use_numa_asked) == (False, True)
    assert (found.processors, found.processors_asked) == (3, None)
    assert (found.collector, found.max_heap_bytes) == ("Parallel", 64 << 20)
    assert (found.large_pages, found.transparent_huge_pages) == (False, True)


def test_no_jvm_is_not_asked() -> None:
    assert (
        look_at_jvm(FakeHost({"/proc/7/maps": "1-2 r-xp 0 0:1 5  /lib/notlibjvm.sol\n"}), 7) is None
    )


def test_a_jvm_that_does_not_answer_is_a_fault_of_the_system() -> None:
    host = FakeHost({"/proc/7/maps": "1-2 r-xp 0 0:1 5  /x/libjvm.so (deleted)\n"})
    with pytest.raises(OSError):
        look_at_jvm(host, 7)


@pytest.mark.parametrize(
    ("arguments", "flag", "asked"),
    [
        (("-XX:+UseNUMA",), Flag("false", "command line"), True),  # turned off, origin kept
        (("-XX:+UseNUMA", "-XX:-UseNUMA"), Flag("false", "command line"), False),
        ((), Flag("false", "default"), False),
        ((), Flag("true", "config file"), True),
        ((), Flag("true", "ergonomic"), False),
        (("-XX:+UseNUMAInterleaving",), Flag("false", "default"), False),
    ],
)
def test_whether_use_numa_was_asked(arguments: tuple[str, ...], flag: Flag, asked: bool) -> None:
    found = summarize(version="", flags={"UseNUMA": flag}, arguments=arguments, processors=2)
    assert (found.use_numa, found.use_numa_asked) == (flag.on, asked)


def test_the_oldest_jvm_still_tells_its_flags() -> None:
    found = summarize(
        version="25.4", flags=parse_flags(FLAGS_8), arguments=("-XX:+UseNUMA",), processors=None
    )
    assert (found.use_numa, found.use_numa_asked, found.processors) == (True, True, None)
    assert found.collector == "Parallel"


@given(st.text())
def test_any_answer_is_read(text: str) -> None:
    summarize(
        version=parse_version(text),
        flags=parse_flags(text),
        arguments=parse_arguments(text),
        processors=parse_processors(text),
    )


# ---- asking ------------------------------------------------------------------------------------

CATCHES_QUIT = "Name:\tjava\nUid:\t5\t5\t5\t5\nSigCgt:\t0000000101005ccd\n"
JAVA = Target(
    executable="/opt/jdk/bin/java",
    status=CATCHES_QUIT,
    state="S",
    threads=("java", "java", "Signal Dispatch"),
    maps="... /opt/jdk/lib/server/libjvm.so\n",
    options=("java", "-jar", "x.jar"),
)


def test_an_ordinary_jvm_may_be_asked_by_its_user_and_by_root() -> None:
    assert refusal(JAVA, 5) == ""
    assert refusal(JAVA, 0) == ""
    assert "user 5" in refusal(JAVA, 6)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"maps": "/lib/libc.so.6"}, "not a HotSpot"),
        ({"maps": "/j/libjvm.so\n/j/libj9vm29.so\n"}, "OpenJ9"),
        ({"state": "T"}, "stopped"),
        ({"executable": "/usr/lib/postgresql/15/bin/postgres"}, "not started by 'java'"),
        ({"status": CATCHES_QUIT.replace("5ccd", "5cc9")}, "would die"),
        # A name that plays the kernel's line: the kernel's own comes after it.
        ({"status": "Name:\t\rSigCgt:\t4\nUid:\t5\t5\nSigCgt:\t0\n"}, "would die"),
        ({"status": "Uid:\t5\t5\n"}, "would die"),
        ({"threads": ("java", "GC Thread#0")}, "does not handle SIGQUIT"),
        ({"options": ("java", "-Xrs", "-jar", "x")}, "-Xrs"),
        ({"options": ("java", "JAVA_TOOL_OPTIONS=-Xmx1g -Xrs")}, "-Xrs"),
        ({"options": ("java", "-XX:+ReduceSignalUsage")}, "-Xrs"),
        ({"options": ("java", "-XX:+DisableAttachMechanism")}, "DisableAttachMechanism"),
        ({"options": ("java", "-XX:Flags=f", "+DisableAttachMechanism\n")}, "DisableAttach"),
        ({"unread": "args.txt"}, "args.txt cannot be read"),
    ],
)
def test_sigquit_is_not_sent_where_it_could_harm(change: dict[str, object], word: str) -> None:
    assert word in refusal(replace(JAVA, **change), 0)  # type: ignore[arg-type]


def proc(**files: str) -> FakeHost:
    host = FakeHost({f"/proc/7/{name}": text for name, text in files.items()})
    defaults = {
        "environ": "A=1\0JDK_JAVA_OPTIONS=-Xmx1g @/etc/more\0X=@/no\0",
        "cmdline": "java\0@args\0-cp\0.\0Main\0",
        "exe": "/opt/jdk/bin/java",
        "status": CATCHES_QUIT,
        "stat": "7 (java) S " + " ".join(["0"] * 50),
        "maps": "x /opt/jdk/lib/server/libjvm.so\n",
        "task/7/comm": "java\n",
        "task/8/comm": "Signal Dispatch\n",
    }
    for name, text in defaults.items():
        host.files.setdefault(f"/proc/7/{name}", text)
    return host


def test_options_in_files_are_read() -> None:
    host = proc()
    host.files["/proc/7/cwd/args"] = "-Xmx1g\n-XX:+UseSerialGC"
    host.files["/proc/7/root/etc/more"] = '"-XX:+DisableAttachMechanism"'
    assert refusal(look(host, 7), 0) == "it runs with -XX:+DisableAttachMechanism"
    host.files["/proc/7/root/etc/more"] = "-Xmx1g"
    assert refusal(look(host, 7), 0) == ""
    del host.files["/proc/7/cwd/args"]
    assert refusal(look(host, 7), 0) == "its options in args cannot be read"


def test_the_protocol() -> None:
    assert request("VM.flags -all") == b"1\0jcmd\0VM.flags -all\0\0\0"
    assert parse_answer("0\nyes\nno\n", "x") == "yes\nno\n"
    for answer in ("", "1\njava.lang.Bad:\n words\n", "101\n"):
        with pytest.raises(OSError) as fault:
            parse_answer(answer, "VM.x")
        assert fault.value.errno == errno.EPROTO
        assert "\n" not in str(fault.value)
