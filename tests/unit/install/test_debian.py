"""Debian packages: apt's sources read, the private configuration, unpacking, putting in place.

The network is not asked here; tests/engines/test_install_real.py does that.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from atoll.errors import DownloadFailed
from atoll.host.local import LocalHost
from atoll.host.processes import Finished
from atoll.install import debian, debian_sources
from atoll.install.client import runner
from atoll.install.debian_sources import parse_deb822, parse_list
from atoll.install.progress import Lines
from tests.parts.faults import fails
from tools import fetch_deb

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


def test_reads_stanzas() -> None:
    sources = parse_deb822(DEB822)
    assert [source.suites for source in sources] == [
        ("bookworm", "bookworm-updates"),
        ("bookworm-security",),
        ("nodistro",),
    ]
    assert sources[0].options == (("Signed-By", "/usr/share/keyrings/archive.gpg"),)
    assert "BEGIN PGP" in sources[1].stanza()
    assert "\n .\n abc\n" in sources[1].stanza()
    assert "Trusted" not in sources[1].stanza()  # verification stays on


def test_reads_lists() -> None:
    first, second = parse_list(LIST)
    assert first.uris == ("http://mirror.example.org/debian",)
    assert first.components == ("main",)
    assert dict(first.options) == {"Architectures": "amd64 arm64", "Signed-By": "/k.gpg"}
    assert second.suites == ("cloud-sdk-bookworm",)


def test_a_stanza_written_is_read_the_same() -> None:
    for source in parse_deb822(DEB822):
        assert parse_deb822(source.stanza()) == [source]


def test_third_parties_are_left_out() -> None:
    both = parse_deb822(DEB822) + parse_list(LIST)
    own = debian_sources.of_the_system(both, "bookworm")
    assert [source.suites[0] for source in own] == ["bookworm", "bookworm-security", "bookworm"]


def test_another_suite_comes_from_the_same_archive() -> None:
    own = debian_sources.of_the_system(parse_deb822(DEB822), "bookworm")
    more = debian_sources.with_suite(own, "bookworm-backports", "bookworm")
    assert more[:-1] == own
    assert more[-1].suites == ("bookworm-backports",)
    assert (more[-1].uris, more[-1].options) == (own[0].uris, own[0].options)
    assert debian_sources.with_suite(own, "bookworm-updates", "bookworm") == own


def test_the_private_apt_takes_proxies_but_no_holes(tmp_path: Path) -> None:
    host = (
        'Acquire::http::Proxy "http://proxy:3128";\n'
        'Acquire::AllowInsecureRepositories "true";\n'
        'Acquire::https::Verify-Peer "false";\n'
    )
    config = debian.apt_config(tmp_path, host)
    assert 'Acquire::http::Proxy "http://proxy:3128";' in config
    assert "Insecure" not in config
    assert "Verify-Peer" not in config
    assert f'Dir::State "{tmp_path}/state";' in config
    assert 'Dir::Etc::parts "/dev/null";' in config  # the host's hooks do not run


def test_absolute_links_lead_into_the_tree(tmp_path: Path) -> None:
    (tmp_path / "etc/java").mkdir(parents=True)
    (tmp_path / "etc/java/security").write_text("here")
    (tmp_path / "usr/lib/jvm").mkdir(parents=True)
    inside, outside = tmp_path / "usr/lib/jvm/security", tmp_path / "usr/lib/jvm/cacerts"
    inside.symlink_to("/etc/java/security")
    outside.symlink_to("/etc/ssl/certs/none")
    debian.mend(tmp_path)
    assert inside.read_text() == "here"
    assert not os.path.isabs(os.readlink(inside))
    assert os.readlink(outside) == "/etc/ssl/certs/none"


def test_setuid_bits_are_dropped(tmp_path: Path) -> None:
    (tmp_path / "su").touch()
    (tmp_path / "su").chmod(0o6755)
    debian.mend(tmp_path)
    assert stat.S_IMODE((tmp_path / "su").stat().st_mode) == 0o755


DEB = b"a package"
Usage = namedtuple("Usage", "total used free")


class Apt:
    """Commands of apt and dpkg, played; `hello` is the only package there is."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.sends = DEB
        self.lacking = ""
        self.digest = "SHA256"

    def __call__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        tick: Callable[[], None] = lambda: None,
    ) -> Finished:
        self.calls.append(list(argv))
        if "--print-uris" in argv:
            if "hello" not in argv:
                return Finished(100, "", "Reading...\nE: Unable to locate package nonsense\n")
            digest = hashlib.new(self.digest, DEB).hexdigest()
            where = "'http://x.example.org/hello_1_all.deb' hello_1_all.deb"
            return Finished(0, f"{where} {len(DEB)} {self.digest}:{digest}\n", "")
        if "download" in argv and cwd is not None and not (cwd / "hello_1_all.deb").exists():
            (cwd / "hello_1_all.deb").write_bytes(self.sends)
            tick()
        if "-x" in argv:
            Path(argv[-1], "usr").mkdir()
        if "-s" in argv:
            return Finished(0, self.lacking, "")
        return Finished(0, "hello 1" if "-W" in argv else "", "")

    def downloads(self) -> int:
        return len([call for call in self.calls if "download" in call]) // 2


@pytest.fixture
def apt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Apt:
    played = Apt()
    monkeypatch.setattr(fetch_deb, "runner", lambda host: played)
    monkeypatch.setattr(debian_sources, "release_codename", lambda: "bookworm")
    sources = parse_deb822(DEB822)
    monkeypatch.setattr(debian_sources, "machine_sources", lambda: sources)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return played


def test_unpacks_once(apt: Apt, tmp_path: Path) -> None:
    into = tmp_path / "hello"
    assert fetch_deb.main(["hello", "--into", str(into)]) == 0
    assert json.loads((into / ".fetch_deb.json").read_text())["versions"] == {"hello": "1"}
    assert (into / "usr").is_dir()
    before = len(apt.calls)
    assert fetch_deb.main(["hello", "--into", str(into)]) == 0
    assert len(apt.calls) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [".hello.lock", "cache", "hello"]


def test_what_a_killed_one_left_beside_it_is_cleared_away(apt: Apt, tmp_path: Path) -> None:
    (tmp_path / ".hello.unfinished/tree").mkdir(parents=True)
    assert fetch_deb.main(["hello", "--into", str(tmp_path / "hello")]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [".hello.lock", "cache", "hello"]


def test_with_what_they_need_is_another_wish(apt: Apt, tmp_path: Path) -> None:
    into = tmp_path / "hello"
    assert fetch_deb.main(["hello", "--into", str(into)]) == 0
    before = len(apt.calls)
    assert fetch_deb.main(["hello", "--with-depends", "--into", str(into)]) == 0
    assert len(apt.calls) > before
    before = len(apt.calls)
    assert fetch_deb.main(["hello", "--with-depends", "--into", str(into)]) == 0
    assert len(apt.calls) == before


def test_what_is_not_to_be_had_leaves_nothing_and_keeps_the_old(
    apt: Apt, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into = tmp_path / "hello"
    assert fetch_deb.main(["hello", "--into", str(into)]) == 0
    assert fetch_deb.main(["nonsense", "--into", str(into)]) == 6
    assert (into / "usr").is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".hello.lock", "cache", "hello"]
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == (
        "fetch_deb: nonsense: apt-get download: E: Unable to locate package nonsense; this release "
        "lacks that version; install the one it has and Atoll will use it"
    )


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    assert fetch_deb.main(["hello", "--into", str(tmp_path)]) == 2
    assert (tmp_path / "mine").read_text() == "x"


def test_no_apt_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(debian_sources, "release_codename", lambda: "bookworm")
    monkeypatch.setattr(debian_sources, "machine_sources", lambda: parse_deb822(DEB822))
    with fails(DownloadFailed, program="apt-config"):
        order = debian.Order(("hello",))
        debian.fetch(order, tmp_path / "x", tell=Lines("x"), run=runner(LocalHost()))


def test_a_disk_that_gets_full_ends_apt_which_would_wait(
    apt: Apt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = tmp_path / "keep"
    keep.mkdir()
    monkeypatch.setattr("shutil.disk_usage", lambda path: Usage(1, 1, 1000))
    with pytest.raises(OSError, match="No space left on device"):
        unpack(apt, tmp_path, keep)


def unpack(apt: Apt, tmp_path: Path, keep: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    told: list[str] = []
    debian.unpack_packages(
        ("hello",), tree, keep, tell=lambda doing, *_: told.append(doing), run=apt
    )


def test_an_index_with_stronger_digests_will_do(apt: Apt, tmp_path: Path) -> None:
    """apt names the strongest that there is."""
    apt.digest = "SHA512"
    unpack(apt, tmp_path, tmp_path)
    assert (tmp_path / "tree/usr").is_dir()


def test_what_no_digest_guards_is_not_unpacked(apt: Apt, tmp_path: Path) -> None:
    apt.digest = "SHA1"
    with fails(DownloadFailed, package="hello"):
        unpack(apt, tmp_path, tmp_path)
    assert list((tmp_path / "tree").iterdir()) == []


@pytest.mark.parametrize("digest", ["SHA256", "SHA512"])
def test_what_is_not_what_the_index_says_is_refused_and_removed(
    apt: Apt, tmp_path: Path, digest: str
) -> None:
    apt.digest = digest
    apt.sends = b"b package"
    with fails(DownloadFailed, file="hello_1_all.deb"):
        unpack(apt, tmp_path, tmp_path)
    assert not (tmp_path / "hello_1_all.deb").exists()


def test_what_lies_there_is_checked_too(apt: Apt, tmp_path: Path) -> None:
    """apt itself takes a file of the right size for the right one."""
    keep = tmp_path / "keep"
    keep.mkdir()
    (keep / "hello_1_all.deb").write_bytes(b"b package")
    (keep / "hello_0_all.deb").write_bytes(b"an older one")
    unpack(apt, tmp_path, keep)
    assert [path.name for path in keep.iterdir()] == ["hello_1_all.deb"]
    assert (keep / "hello_1_all.deb").read_bytes() == DEB


def test_dependencies_can_be_held_to_a_pattern() -> None:
    """A meta package is followed to the kernel, and not to what an installed kernel needs."""
    simulated = "Inst linux-base (4)\nInst linux-image-6.12 (6)\nConf linux-image-6.12 (6)\n"
    asked = ["linux-image-amd64", "busybox-static"]
    found = debian.depends(asked, "linux-image-*", [], lambda argv: simulated)
    assert found == ["busybox-static", "linux-image-6.12", "linux-image-amd64"]
    assert "linux-base" in debian.depends(asked, "*", [], lambda argv: simulated)
