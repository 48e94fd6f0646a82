"""Users' configuration files: ours on top, all else byte for byte, and where a fault is."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.engines.mariadb import option_file
from atoll.engines.postgresql import config_file
from atoll.engines.userconfig.java import write_arguments
from atoll.engines.userconfig.merge import (
    MARK,
    merge_flags,
    merge_properties,
    read_flags,
    read_properties,
)
from atoll.errors import UsageError
from tests.parts.faults import fails

Merge = Callable[[str, dict[str, str | None]], str]
Read = Callable[[str], dict[str, str]]


def merge_spark(text: str, settings: dict[str, str | None]) -> str:
    return merge_properties(text, settings, where="f", separator=" ")


def merge_java(text: str, settings: dict[str, str | None]) -> str:
    return merge_properties(text, settings, where="f")


def read_java(text: str) -> dict[str, str]:
    return read_properties(text, where="f")


def merge_server(text: str, settings: dict[str, str | None]) -> str:
    return config_file.merge(text, settings, where="f")


def read_server(text: str) -> dict[str, str]:
    return config_file.read(text, where="f")


def merge_group(text: str, settings: dict[str, str | None]) -> str:
    return option_file.merge(text, "mysqld", settings, where="f", also=("server",))


def read_group(text: str) -> dict[str, str]:
    return option_file.read(text, ("mysqld", "server"), where="f")


names = st.sampled_from(["a", "b.c", "task.concurrency", "key", "d_e"])
plain_names = st.sampled_from(["a", "port", "work_mem", "key"])
anything = st.text(max_size=12).filter(lambda text: "\0" not in text)
printable = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)
ends = st.sampled_from(["\n", "\r\n"])

property_lines = st.one_of(
    st.just(""),
    st.just("  "),
    printable.map(lambda text: f"# {text}".rstrip("\\")),
    st.just("! key=1"),
    st.builds(
        "{}{}{}{}".format,
        st.sampled_from(["", "  ", "\t"]),
        names,
        st.sampled_from(["=", " = ", ":", " ", "  :  ", "=\\\n   "]),
        printable.map(lambda text: "v" + text.replace("\\", "\\\\")),
    ),
    st.just("key=one,\\\n    two,\\\n    three"),
    st.just(r"na\u006de\ with\=more=caf\u00e9"),
)
server_lines = st.one_of(
    st.sampled_from(["", "# port = 1", "include 'other.conf'", "\tinclude_dir = conf.d  # more"]),
    st.builds(
        "{}{}{}{}".format,
        plain_names,
        st.sampled_from([" = ", "=", " "]),
        st.sampled_from(["128MB", "on", "-1", "'it''s'", r"'a\'b\\'", "1.0e-3", "''"]),
        st.sampled_from(["", "  # why", "\t"]),
    ),
)
group_lines = st.one_of(
    st.sampled_from(
        ["", "# port=1", "; port=1", "[client]", "[mysqld]", "[server]", "!includedir /etc/my.d"]
    ),
    st.builds(
        "{}{}".format,
        st.sampled_from(["a", "port", "work-mem", "loose-key", "skip-networking"]),
        st.sampled_from(["", " = 1", "=/a/b", " = 'x # y' # why", '="a\\"b"', "=", " = 1 # why"]),
    ),
)


def files(lines: st.SearchStrategy[str], first: str = "") -> st.SearchStrategy[str]:
    whole = st.lists(st.tuples(lines, ends).map("".join)).map("".join)
    return st.tuples(whole, st.sampled_from(["\n", ""])).map(
        lambda parts: first + (parts[0] if parts[1] else parts[0].removesuffix("\n"))
    )


ours = {
    "java": st.dictionaries(names, st.none() | anything | printable, max_size=4),
    "server": st.dictionaries(plain_names, st.none() | printable, max_size=4),
}
FORMATS: dict[str, tuple[Merge, Read, st.SearchStrategy[str], str]] = {
    "java": (merge_java, read_java, files(property_lines), "java"),
    "spark": (merge_spark, read_java, files(property_lines), "java"),
    "postgresql": (merge_server, read_server, files(server_lines), "server"),
    "mariadb": (merge_group, read_group, files(group_lines, "[mysqld]\n"), "server"),
}


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_ours_are_on_top_and_all_else_is_as_it_was(name: str, data: st.DataObject) -> None:
    merge, read, texts, kind = FORMATS[name]
    text, settings = data.draw(texts), data.draw(ours[kind])
    merged = merge(text, settings)
    expected = {key: value for key, value in read(text).items() if key not in settings}
    expected |= {key: value for key, value in settings.items() if value is not None}
    assert read(merged) == expected
    assert merge(merged, settings) == merged, "merging twice is merging once"


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_what_is_not_named_keeps_its_bytes(name: str, data: st.DataObject) -> None:
    merge, _, texts, _ = FORMATS[name]
    text = data.draw(texts)
    assert merge(text, {}) == text
    assert merge(text, {"never.there": None}) == text
    added = merge(text, {"never_there": "1"})
    assert added.startswith(text)
    assert added.removeprefix(text).lstrip("\n").startswith(MARK)


@given(text=files(server_lines), settings=ours["server"])
def test_lines_of_other_keys_stay_in_their_order(
    text: str, settings: dict[str, str | None]
) -> None:
    text, named = text.replace("\r", ""), tuple(settings)
    others = [
        line
        for line in text.split("\n")
        if line and line.strip().replace("=", " ").split(" ")[0].lower() not in named
    ]
    merged = iter(merge_server(text, settings).split("\n"))
    assert all(any(line == found for found in merged) for line in others)


def test_a_value_is_replaced_where_it_stands() -> None:
    text = "# mine\nhttp-server.http.port = 8080\n\ntask.concurrency:16\nnode.id=a\\\n  b\nz=1"
    merged = merge_java(
        text, {"task.concurrency": "8", "node.id": "n0", "z": None, "query.max-memory": "4GB"}
    )
    assert merged == (
        "# mine\nhttp-server.http.port = 8080\n\ntask.concurrency:8\nnode.id=n0\n"
        f"{MARK}\nquery.max-memory=4GB\n"
    )


def test_a_key_that_stands_twice_is_replaced_twice() -> None:
    assert merge_java("a=1\nb=2\na=3\n", {"a": "9"}) == "a=9\nb=2\na=9\n"


def test_a_value_that_is_ours_already_is_not_written_anew() -> None:
    text = "a = \\\n   1\n"
    assert merge_java(text, {"a": "1"}) == text


def test_properties_are_read_as_java_reads_them() -> None:
    text = (
        "a = b\n! c\nd:e=f\ng h i\nj\\:k=l\\\n   m \nn=\\u00e9\\t\\q\r\n"
        "path=C\\:\\\\x\no =\np\\ =\\ q\n\\\n # r=s\n"
    )
    assert read_java(text) == {
        "a": "b",
        "d": "e=f",
        "g": "h i",
        "j:k": "lm ",
        "n": "é\tq",
        "path": "C:\\x",
        "o": "",
        "p ": " q",
    }


def test_flags_of_a_kind_are_replaced_and_others_stay() -> None:
    text = (
        "-server\n-Xmx16G\n-XX:InitialHeapSize=1g\n# why\n-XX:-UseNUMA\n-XX:+UseG1GC\n"
        "-Dlog=a b\n-XX:OnOutOfMemoryError=kill -9 %p\n--add-opens\njava.base/java.nio=X\n"
        "--add-opens\njava.base/java.io=X\n-XX:ActiveProcessorCount=96"
    )
    flags = [
        "-Xmx4G",
        "-Xms4G",
        "-XX:+UseNUMA",
        "-XX:+UseParallelGC",
        "-XX:ActiveProcessorCount=8",
        "-Dlog=c",
        "-XX:+AlwaysPreTouch",
    ]
    merged = merge_flags(text, flags, where="jvm.config")
    assert merged == (
        "-server\n-Xmx4G\n-Xms4G\n# why\n-XX:+UseNUMA\n-XX:+UseParallelGC\n"
        "-Dlog=c\n-XX:OnOutOfMemoryError=kill -9 %p\n--add-opens\njava.base/java.nio=X\n"
        "--add-opens\njava.base/java.io=X\n-XX:ActiveProcessorCount=8\n"
        f"{MARK}\n-XX:+AlwaysPreTouch\n"
    )
    assert merge_flags(merged, flags, where="jvm.config") == merged
    assert read_flags(merged, where="jvm.config")[0] == "-server"


def test_flags_are_taken_out_by_how_they_begin() -> None:
    text = "-server\n-Xmn8G\n-Dx.port=1\n-Dx.porter=1\n"
    without = re.compile(r"-Xmn|-Dx\.port=")
    assert merge_flags(text, [], where="f", without=without) == "-server\n-Dx.porter=1\n"
    ours = merge_flags(text, ["-Dx.port=2"], where="f", without=without)
    assert ours == "-server\n-Dx.port=2\n-Dx.porter=1\n"


def test_java_reads_its_arguments_back() -> None:
    """By the rules of the launcher: within quotes a backslash takes the next as it is."""
    words = ["-Da=b c", '-Dq="x"', "-Dpath=C:\\new", "-D#=#", "'"]
    read = [re.sub(r"\\(.)", r"\1", line[1:-1]) for line in write_arguments(words).splitlines()]
    assert read == words


def test_no_comment_of_the_users_vouches_for_a_value_of_atolls() -> None:
    """The setting is made once, and the lines above keep their numbers."""
    theirs = "  shared_buffers = 8GB  # agreed with Ann\nport = 1 # first\nport = 2\n"
    assert merge_server(theirs, {"shared_buffers": "1GB", "port": "2"}) == (
        "# replaced below: shared_buffers = 8GB  # agreed with Ann\n"
        f"# replaced below: port = 1 # first\nport = 2\n{MARK}\nshared_buffers = '1GB'\n"
    )
    options = "[mysqld]\nport = 1  # Ann's\nskip-y # why\n[client]\nport = 2\n"
    assert merge_group(options, {"port": "9", "skip_y": None}) == (
        "[mysqld]\n# replaced below: port = 1  # Ann's\n# removed: skip-y # why\n[client]\n"
        f"port = 2\n{MARK}\n[mysqld]\nport = 9\n"
    )


def test_a_setting_above_an_include_is_made_below_it() -> None:
    merged = merge_server("port = 1\ninclude 'b.conf'\n", {"port": "2"})
    assert merged == f"# replaced below: port = 1\ninclude 'b.conf'\n{MARK}\nport = '2'\n"
    assert merge_server(merged, {"port": "2"}) == merged


def test_what_other_programs_read_stays() -> None:
    text = "[client]\nport = 1\n[mysqld ]\nport = 2\n[server]\nport = 3\n"
    merged = merge_group(text, {"port": "9", "skip-networking": "1"})
    assert merged == (
        "[client]\nport = 1\n[mysqld ]\n# replaced below: port = 2\n[server]\n"
        f"# replaced below: port = 3\n{MARK}\n[mysqld]\nport = 9\nskip_networking = 1\n"
    )


@pytest.mark.parametrize(
    ("fault", "where"),
    [
        (lambda: merge_java("a=1\nb=\\u12\n", {}), "f:2"),
        (lambda: merge_java("a=1\n=x\n", {}), "f:2"),
        (lambda: merge_java("# x\n\ngarbage\n", {}), "f:3"),
        (lambda: merge_java("a=1\\", {}), "f:1"),
        (lambda: merge_flags("-server\nXmx4G\n", [], where="f"), "f:2"),
        (lambda: merge_flags("-Xms1G -Xmx4G\n", [], where="f"), "f:1"),
        (lambda: merge_flags("@more\n", [], where="f"), "f:1"),
        (lambda: merge_server("port = 1\nport = = 2\n", {}), "f:2"),
        (lambda: merge_server("a = 'open\n", {}), "f:1"),
        (lambda: merge_server("work_mem = 10/20\n", {}), "f:1"),
        (lambda: merge_server("nothing\n", {}), "f:1"),
        (lambda: merge_group("port=1\n", {}), "f:1"),
        (lambda: merge_group("[mysqld\nport=1\n", {}), "f:1"),
        (lambda: merge_group("[mysqld]\nport 1\n", {}), "f:2"),
    ],
)
def test_a_syntax_error_names_file_and_line(fault: Callable[[], str], where: str) -> None:
    with fails(UsageError, where=where):
        fault()


@pytest.mark.parametrize(
    "fault",
    [
        lambda: merge_java("connection-password=abc\nhunter2\n", {}),  # a wrapped value
        lambda: merge_java("shared-secret\\=hunter2\n", {}),
        lambda: merge_java("=hunter2\n", {}),
        lambda: merge_flags("Dx.password=hunter2\n", [], where="f"),
        lambda: merge_flags("-Xfoo -Dx.password=hunter2\n", [], where="f"),
        lambda: merge_server("primary_conninfo = 'user=u password=hunter2\n", {}),
        lambda: merge_group("password=hunter2\n", {}),
        lambda: merge_group("[client]\npassword hunter2\n", {}),
    ],
)
def test_a_syntax_error_repeats_no_password(fault: Callable[[], object]) -> None:
    with pytest.raises(UsageError) as caught:
        fault()
    assert "hunter2" not in str(caught.value)
