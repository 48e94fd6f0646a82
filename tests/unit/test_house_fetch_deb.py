"""tools/fetch_deb: reading apt's sources, the private configuration, and putting files in place.

The network is not asked here; tests/engines/test_fetch_deb.py does that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

DEB822 = """\
# the distribution
Types: deb deb-src
URIs: http://mirror.example.org/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/archive.gpg

Types: deb
URIs: http://mirror.example.org/debian-security/
Suites: bookworm-security
Components: main
Trusted: yes
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
 -----END PGP PUBLIC KEY BLOCK-----

Types: deb
URIs: https://deb.example.org/node_20.x
Suites: nodistro
Components: main

Enabled: no
Types: deb
URIs: http://off.example.org
Suites: bookworm
Components: main
"""

LIST = """\
# deb http://commented.example.org bookworm main
deb [arch=amd64,arm64 signed-by=/k.gpg trusted=yes] http://mirror.example.org/debian bookworm main#x
deb-src http://mirror.example.org/debian bookworm main
deb http://cloud.example.org/apt cloud-sdk-bookworm main
"""


@pytest.fixture(scope="module")
def fetch_deb() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "tools/fetch_deb"
    loader = SourceFileLoader("fetch_deb", str(path))
    spec = spec_from_loader("fetch_deb", loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules["fetch_deb"] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module


def test_reads_stanzas(fetch_deb: ModuleType) -> None:
    sources = fetch_deb.parse_deb822(DEB822)
    assert [source.suites for source in sources] == [
        ("bookworm", "bookworm-updates"),
        ("bookworm-security",),
        ("nodistro",),
    ]
    assert sources[0].options == (("Signed-By", "/usr/share/keyrings/archive.gpg"),)
    assert "BEGIN PGP" in sources[1].stanza()
    assert "\n .\n abc\n" in sources[1].stanza()
    assert "Trusted" not in sources[1].stanza()  # verification stays on


def test_reads_lists(fetch_deb: ModuleType) -> None:
    first, second = fetch_deb.parse_list(LIST)
    assert first.uris == ("http://mirror.example.org/debian",)
    assert first.components == ("main",)
    assert dict(first.options) == {"Architectures": "amd64 arm64", "Signed-By": "/k.gpg"}
    assert second.suites == ("cloud-sdk-bookworm",)


def test_a_stanza_written_is_read_the_same(fetch_deb: ModuleType) -> None:
    for source in fetch_deb.parse_deb822(DEB822):
        assert fetch_deb.parse_deb822(source.stanza()) == [source]


def test_third_parties_are_left_out(fetch_deb: ModuleType) -> None:
    both = fetch_deb.parse_deb822(DEB822) + fetch_deb.parse_list(LIST)
    own = fetch_deb.of_the_system(both, "bookworm")
    assert [source.suites[0] for source in own] == ["bookworm", "bookworm-security", "bookworm"]


def test_another_suite_comes_from_the_same_archive(fetch_deb: ModuleType) -> None:
    own = fetch_deb.of_the_system(fetch_deb.parse_deb822(DEB822), "bookworm")
    more = fetch_deb.with_suite(own, "bookworm-backports", "bookworm")
    assert more[:-1] == own
    assert more[-1].suites == ("bookworm-backports",)
    assert (more[-1].uris, more[-1].options) == (own[0].uris, own[0].options)
    assert fetch_deb.with_suite(own, "bookworm-updates", "bookworm") == own


def test_the_private_apt_takes_proxies_but_no_holes(fetch_deb: ModuleType, tmp_path: Path) -> None:
    host = (
        'Acquire::http::Proxy "http://proxy:3128";\n'
        'Acquire::AllowInsecureRepositories "true";\n'
        'Acquire::https::Verify-Peer "false";\n'
    )
    config = fetch_deb.apt_config(tmp_path, host)
    assert 'Acquire::http::Proxy "http://proxy:3128";' in config
    assert "Insecure" not in config
    assert "Verify-Peer" not in config
    assert f'Dir::State "{tmp_path}/state";' in config
    assert 'Dir::Etc::parts "/dev/null";' in config  # the host's hooks do not run


def test_absolute_links_lead_into_the_tree(fetch_deb: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "etc/java").mkdir(parents=True)
    (tmp_path / "etc/java/security").write_text("here")
    (tmp_path / "usr/lib/jvm").mkdir(parents=True)
    inside, outside = tmp_path / "usr/lib/jvm/security", tmp_path / "usr/lib/jvm/cacerts"
    inside.symlink_to("/etc/java/security")
    outside.symlink_to("/etc/ssl/certs/none")
    fetch_deb.relink(tmp_path)
    assert inside.read_text() == "here"
    assert not os.path.isabs(os.readlink(inside))
    assert os.readlink(outside) == "/etc/ssl/certs/none"


@pytest.fixture
def fake_apt(fetch_deb: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands of apt and dpkg, played; `hello` is the only package there is."""
    calls: list[list[str]] = []

    def play(argv: list[str], **options: Any) -> str:
        calls.append(argv)
        if "download" in argv:
            if argv[-1] != "hello":
                raise fetch_deb.FetchError("apt-get download: E: Unable to locate package")
            (options["cwd"] / "hello_1_amd64.deb").touch()
        if "-x" in argv:
            Path(argv[-1], "usr").mkdir()
        return "hello 1" if "-W" in argv else ""

    monkeypatch.setattr(fetch_deb, "run", play)
    monkeypatch.setattr(fetch_deb, "release_codename", lambda: "bookworm")
    sources = fetch_deb.parse_deb822(DEB822)
    monkeypatch.setattr(fetch_deb, "machine_sources", lambda: sources)
    return calls


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_unpacks_once(
    fetch_deb: ModuleType, fake_apt: list[list[str]], cache: Path, tmp_path: Path
) -> None:
    into = tmp_path / "hello"
    assert fetch_deb.main(["hello", "--into", str(into)]) == 0
    assert json.loads((into / ".fetch_deb.json").read_text())["versions"] == {"hello": "1"}
    assert (into / "usr").is_dir()
    before = len(fake_apt)
    assert fetch_deb.main(["hello", "--into", str(into)]) == 0
    assert len(fake_apt) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "hello"]


def test_what_is_not_to_be_had_leaves_nothing_and_keeps_the_old(
    fetch_deb: ModuleType,
    fake_apt: list[list[str]],
    cache: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    into = tmp_path / "hello"
    assert fetch_deb.main(["hello", "--into", str(into)]) == 0
    assert fetch_deb.main(["nonsense", "--into", str(into)]) == 6
    assert (into / "usr").is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "hello"]
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "fetch_deb: nonsense: apt-get download: E: Unable to locate package"


def test_a_folder_of_somebody_else_is_left_alone(fetch_deb: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    assert fetch_deb.main(["hello", "--into", str(tmp_path)]) == 2
    assert (tmp_path / "mine").read_text() == "x"


def test_no_apt_is_one_line(root: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, root / "tools/fetch_deb", "hello", "--into", tmp_path / "x"],
        env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 6
    assert done.stderr.count("\n") == 1
    assert "apt-config: not on this machine" in done.stderr


def test_dependencies_can_be_held_to_a_pattern(
    fetch_deb: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A meta package is followed to the kernel, and not to what an installed kernel needs."""
    simulated = "Inst linux-base (4)\nInst linux-image-6.12 (6)\nConf linux-image-6.12 (6)\n"
    monkeypatch.setattr(fetch_deb, "run", lambda argv, **options: simulated)
    asked, config = ["linux-image-amd64", "busybox-static"], tmp_path / "apt.conf"
    found = fetch_deb.depends(asked, "linux-image-*", [], config)
    assert found == ["busybox-static", "linux-image-6.12", "linux-image-amd64"]
    assert "linux-base" in fetch_deb.depends(asked, "*", [], config)
