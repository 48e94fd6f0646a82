"""Fetches a tarball with the user's own Maven, and so with its mirrors, proxies and passwords.

Maven gets a repository folder of Atoll's, so that Atoll can watch the download, keep it after a
kill, and remove it. A tarball that lies in Maven's usual folder already is taken from there.

Maven's half downloads (FILE.part) are resumed by its 'http' transport, if the repository can: the
default since 3.9; Atoll adds the same transport to Maven 3.8 as an extension.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from atoll.errors import DownloadFailed
from atoll.install.catalog import Artifact
from atoll.install.client import Run

# Since 3.0 it reads the artifact's POM and all that this one names: up to 1,800 files.
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:2.8:get"
_EXTENSIONS = """<extensions>
  <extension>
    <groupId>org.apache.maven.resolver</groupId>
    <artifactId>maven-resolver-transport-http</artifactId>
    <version>1.6.3</version>
  </extension>
</extensions>
"""
_HASTE = (
    # Maven's own limits are half an hour.
    "-Daether.connector.requestTimeout=60000",
    "-Daether.connector.connectTimeout=20000",
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def repository(keep: Path) -> Path:
    return keep / "repository"


def places(artifact: Artifact, keep: Path) -> tuple[Path, ...]:
    """Where the tarball may be already: in our repository, and in Maven's usual one."""
    usual = Path.home() / ".m2/repository"
    return tuple(root / artifact.path for root in (repository(keep), usual))


def fetch(artifact: Artifact, keep: Path, *, run: Run, tick: Callable[[], None]) -> Path:
    """Fetch the tarball and return its path. Raises DownloadFailed, which quotes Maven."""
    # Maven looks for projects and extensions from its working folder upwards, and finds this one.
    own = keep / ".mvn"
    own.mkdir(parents=True, exist_ok=True)
    try:
        if re.search(r"Apache Maven 3\.8\.", run(["mvn", "--version"], cwd=keep).stdout):
            (own / "extensions.xml").write_text(_EXTENSIONS)
        done = run(
            [
                *("mvn", "--batch-mode", "--no-transfer-progress", "--update-snapshots"),
                f"-Dmaven.repo.local={repository(keep)}",
                *_HASTE,
                *(_PLUGIN, "-Dtransitive=false", f"-Dartifact={artifact.coordinates}"),
            ],
            cwd=keep,
            tick=tick,
        )
    except FileNotFoundError:
        raise DownloadFailed(
            f"{artifact.coordinates}: needs Maven, and 'mvn' is not installed; "
            "install it with: apt-get install maven"
        ) from None
    found = repository(keep) / artifact.path
    if done.returncode != 0 or not found.is_file():
        reason = _reason(done.stdout + done.stderr)
        raise DownloadFailed(
            f"{artifact.coordinates}: mvn could not fetch it: {reason}; fix the cause (network, "
            "proxy, ~/.m2/settings.xml) and try again; what was fetched is kept"
        )
    return found


def _reason(output: str) -> str:
    """The cause in Maven's first error line, which repeats itself before it names the cause."""
    lines = [line.strip() for line in _COLOUR.sub("", output).splitlines() if line.strip()]
    errors = [line.removeprefix("[ERROR]").strip() for line in lines if line.startswith("[ERROR]")]
    first = (errors or lines[-1:] or ["no message"])[0].split(" -> [Help")[0]
    cause = re.search(r"transfer failed for \S+?: (.+)|(Could not find artifact .+)", first)
    return (cause[1] or cause[2]) if cause else first
