"""`atoll engine`: what there is, what is fetched, what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from atoll.cli import run
from atoll.engines import registry
from atoll.engines.api import Installation
from atoll.engines.availability import look, wanted_parts
from atoll.engines.facts import EngineFacts
from atoll.errors import ClientMissing, EngineFailed, NotPermitted, UsageError
from atoll.host.api import Host
from atoll.host.processes import Finished
from atoll.install import installing, listing
from atoll.install.catalog import Java, Packages, Part, Wheel
from atoll.install.progress import Tell
from tests.parts.fake_host import FakeHost
from tests.parts.faults import check_complaint

Capture = pytest.CaptureFixture[str]
MB = 10**6
PARTS = (
    Part("toy-1", "1", Packages(("toy",), False), 1500 * MB, 2000 * MB, "MIT"),
    Part(
        "java-9",
        "9",
        Wheel("java", "9", {"x86_64": ""}, "java"),
        40_000_000,
        90_000_000,
        "GPL",
        Java(9),
    ),
)


class Engine:
    """Found where its parts lie, or in whatever way a test says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.raises: Exception | None = None
        self.facts = EngineFacts(parts=PARTS)

    def locate(self, host: Host) -> Installation:
        if self.raises:
            raise self.raises
        if not (self.folder / "toy-1").is_dir():
            raise EngineFailed("Toy 1 is needed; none was found; fetch it")
        return Installation("1.2", str(self.folder / "toy-1"))


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Engine:
    """The only engine there is, with two parts; installing one makes its folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    engine = Engine(tmp_path / "atoll/engines")

    def get(name: str) -> Engine:
        if name != "toy":
            raise UsageError(f"engine {name!r} is not known")
        return engine

    def install(parts: Sequence[Part], *, tell: Tell, run: object) -> None:
        for part in parts:
            tell(f"fetching {part.name}", 1, 2)
            file = engine.folder / part.name / "file"
            file.parent.mkdir(parents=True)
            file.write_bytes(b"x" * 3_000_000)

    monkeypatch.setattr(registry, "get", get)
    monkeypatch.setattr(registry, "names", lambda: ("toy",))
    monkeypatch.setattr(registry, "programs", dict)
    monkeypatch.setattr(installing, "install", install)
    return engine


def listed(capsys: Capture) -> list[str]:
    assert run(["engine", "list"]) == 0
    return capsys.readouterr().out.splitlines()


def test_the_whole_life(toy: Engine, capsys: Capture) -> None:
    head, row, why = listed(capsys)
    assert head.split() == ["ENGINE", "VERSION", "STATE", "JAVA", "SIZE"]
    assert row.split() == ["toy", "–", "missing", "–", "–"]
    assert why == "toy: Toy 1 is needed; none was found; fetch it"

    assert run(["engine", "install", "toy"]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[:3] == [
        "toy-1: 1.50 GB by apt (toy), 2.00 GB unpacked, MIT",
        "java-9: 40 MB by pip (java 9), 90 MB unpacked, GPL",
        "total: 1.54 GB to fetch, 2.09 GB unpacked",
    ]
    assert said.out.splitlines()[3] == f"toy is ready: 1.2 in {toy.folder}/toy-1"
    assert said.err.splitlines()[0] == "fetching toy-1 (0 MB of 0 MB, 50 %)"
    _, row, where = listed(capsys)
    assert row.split() == ["toy", "1.2", "ready", "–", "6", "MB"]
    assert where == f"toy: {toy.folder}/toy-1"

    assert run(["engine", "install", "toy"]) == 0
    assert capsys.readouterr().out == f"toy is ready: 1.2 in {toy.folder}/toy-1\n"

    assert run(["engine", "remove", "toy"]) == 0
    assert capsys.readouterr().out == "removed: toy-1, java-9\n"
    assert run(["engine", "remove", "toy"]) == 0
    assert capsys.readouterr().out == "nothing to remove: the cache has no part of it\n"


def test_the_java_that_will_run_it_is_listed(
    toy: Engine, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = "/usr/lib/jvm/" + "a-long-name-" * 8 + "/bin/java"
    found = Installation("1.2", "/opt/toy", java, "25.0.2")
    monkeypatch.setattr(Engine, "locate", lambda *_: found)
    _, row, where = listed(capsys)
    assert row.split() == ["toy", "1.2", "ready", "25.0.2", "–"]
    assert where == f"toy: /opt/toy, with {java}"
    assert run(["engine", "list", "--json"]) == 0
    (state,) = json.loads(capsys.readouterr().out)
    assert (state["java"], state["java_version"]) == (java, "25.0.2")


def test_json(toy: Engine, capsys: Capture) -> None:
    assert run(["engine", "list", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["state"] == "missing"
    assert found["size_bytes"] == 0
    assert [part["name"] for part in found["parts"]] == ["toy-1", "java-9"]
    assert found["parts"][0] == {
        "name": "toy-1",
        "version": "1",
        "folder": "",
        "size_bytes": 2_000_000_000,
        "damage": "",
    }


def test_what_the_environment_lacks_is_said_and_not_installed(toy: Engine, capsys: Capture) -> None:
    toy.raises = EngineFailed("the package toy cannot be used; pip install 'atoll[toy]'")
    assert run(["engine", "install", "toy"]) == 5
    said = capsys.readouterr()
    assert "toy is installed: 1 in" in said.out
    assert said.err.splitlines()[-1] == f"atoll: toy: {toy.raises}"


def test_a_server_of_the_machines_own_is_not_fetched_again_for_want_of_a_client(
    toy: Engine, capsys: Capture
) -> None:
    toy.raises = ClientMissing("toyclient cannot be used; pip install 'atoll[toy]'")
    assert run(["engine", "install", "toy"]) == 5
    said = capsys.readouterr()
    assert said.out == "toy is installed\n"
    assert said.err == f"atoll: toy: {toy.raises}\n"
    assert not (toy.folder / "toy-1").exists()


def test_who_may_not_run_it_has_it_all_the_same(toy: Engine, capsys: Capture) -> None:
    toy.raises = NotPermitted("Toy refuses to run as root")
    assert run(["engine", "install", "toy"]) == 0
    said = capsys.readouterr().out
    assert said == "toy: this user may not run it: Toy refuses to run as root\n"


@pytest.mark.parametrize("verb", ["install", "remove"])
def test_an_engine_that_is_not_ours(toy: Engine, verb: str, capsys: Capture) -> None:
    assert run(["engine", verb, "oracle"]) == 2
    check_complaint(capsys.readouterr().err, engine="'oracle'", known="toy")


def test_an_engine_of_another_package_is_listed(toy: Engine, capsys: Capture) -> None:
    toy.raises = EngineFailed("engine 'toy' (their:Toy) cannot be loaded: boom; uninstall it")
    toy.facts = EngineFacts()
    assert listed(capsys)[1].split() == ["toy", "–", "missing", "–", "–"]


def test_a_damaged_part_is_told_and_fetched_anew(toy: Engine, capsys: Capture) -> None:
    assert run(["engine", "install", "toy"]) == 0
    listing.write_list(toy.folder / "toy-1")
    (toy.folder / "toy-1/file").unlink()
    capsys.readouterr()
    _, row, *rest = listed(capsys)
    assert row.split()[:3] == ["toy", "1", "damaged"]
    assert "\n".join(rest).endswith(
        f"toy: {toy.folder}/toy-1/file is missing; fetch it again with: atoll engine install toy"
    )
    host = FakeHost({})
    assert [part.name for part in wanted_parts(look("toy", host), host)] == ["toy-1"]


def test_a_damaged_part_that_is_not_used_is_no_fault(toy: Engine, capsys: Capture) -> None:
    assert run(["engine", "install", "toy"]) == 0
    listing.write_list(toy.folder / "java-9")
    (toy.folder / "java-9/file").unlink()
    assert look("toy", FakeHost({})).state == "ready"


def test_what_is_up_is_not_removed(
    toy: Engine, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (toy.folder / "toy-1").mkdir(parents=True)
    up = SimpleNamespace(name="mine", state="ready", plan=SimpleNamespace(engine="toy"))
    monkeypatch.setattr("atoll.cli.engine.listing", lambda host: ([up], []))
    assert run(["engine", "remove", "toy"]) == 2
    check_complaint(capsys.readouterr().err, engine="toy", deployment="mine")
    assert (toy.folder / "toy-1").is_dir()


def java_host(version: str) -> FakeHost:
    java = "/usr/lib/jvm/java-9-x/bin/java"
    return FakeHost({java: ""}, on_run=lambda argv: Finished(0, "", f'version "{version}"'))


def test_a_java_that_the_machine_has_is_not_fetched(toy: Engine) -> None:
    host = java_host("9.0.1")
    assert [part.name for part in wanted_parts(look("toy", host), host)] == ["toy-1"]


def test_a_java_of_another_version_does_not_do(toy: Engine) -> None:
    host = java_host("17.0.1")
    assert [part.name for part in wanted_parts(look("toy", host), host)] == ["toy-1", "java-9"]


@pytest.mark.parametrize("verb", ["list", "install", "remove"])
def test_help_has_an_example(verb: str, capsys: Capture) -> None:
    assert run(["engine", verb, "--help"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"Example: atoll engine ", said)
    assert max(map(len, said.splitlines())) <= 80
