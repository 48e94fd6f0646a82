"""Reads apt's source files: which archive the machine's own packages come from.

Sources of third parties are left out, and so are options that would admit an unsigned archive.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from atoll.errors import DownloadFailed


@dataclass(frozen=True, slots=True)
class Source:
    """A stanza of apt's sources."""

    uris: tuple[str, ...]
    suites: tuple[str, ...]
    components: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()

    def stanza(self) -> str:
        fields = {
            "Types": "deb",
            "URIs": " ".join(self.uris),
            "Suites": " ".join(self.suites),
            "Components": " ".join(self.components),
        } | dict(self.options)
        return "".join(f"{name}: {value}\n" for name, value in fields.items())


def parse_list(text: str) -> list[Source]:
    """The binary sources of a one-line-style file (sources.list)."""
    found = []
    for line in text.splitlines():
        match = re.match(r"deb\s+(?:\[(.*?)\]\s+)?(\S+)\s+(\S+)\s*([^#]*)", line.strip())
        if match:
            given, uri, suite, components = match.groups()
            pairs = (word.partition("=") for word in (given or "").split())
            options = {name.lower(): value.replace(",", " ") for name, _, value in pairs}
            found.append(Source((uri,), (suite,), tuple(components.split()), _safe(options)))
    return found


def parse_deb822(text: str) -> list[Source]:
    """The enabled binary sources of a stanza-style file (*.sources)."""
    found = []
    text = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for stanza in re.split(r"\n\s*\n", text):
        # A continuation line starts with a space; an embedded key is such lines.
        fields = {
            name.lower(): value.strip("\n").lstrip(" ")
            for name, value in re.findall(r"^([\w-]+):(.*(?:\n[ \t].*)*)", stanza, re.MULTILINE)
        }
        if "deb" not in fields.get("types", "").split() or fields.get("enabled") == "no":
            continue
        uris, suites, components = (
            tuple(fields.get(key, "").split()) for key in ("uris", "suites", "components")
        )
        found.append(Source(uris, suites, components, _safe(fields)))
    return found


def _safe(options: dict[str, str]) -> tuple[tuple[str, str], ...]:
    kept = {"signed-by": "Signed-By", "architectures": "Architectures", "arch": "Architectures"}
    return tuple((kept[name], value) for name, value in options.items() if name in kept)


def of_the_system(sources: Sequence[Source], codename: str) -> list[Source]:
    """The sources of the distribution's release. Third parties name their suites differently."""

    def own(suite: str) -> bool:
        return suite == codename or suite.startswith((f"{codename}-", f"{codename}/"))

    cut = (replace(s, suites=tuple(filter(own, s.suites))) for s in sources)
    return [source for source in cut if source.suites and source.uris]


def of_this_release(suite: str = "") -> list[Source]:
    """The distribution's own sources on this machine, with this suite of the same archive. Raises
    DownloadFailed if there are none."""
    codename = release_codename()
    sources = of_the_system(machine_sources(), codename)
    if not sources:
        raise DownloadFailed(
            f"/etc/apt: no source of {codename}; add the distribution's own archive"
        )
    return with_suite(sources, suite, codename) if suite else sources


def with_suite(sources: Sequence[Source], suite: str, codename: str) -> list[Source]:
    """`sources` and one more suite of the same archive, with the same key."""
    if any(suite in source.suites for source in sources):
        return list(sources)
    base = [source for source in sources if codename in source.suites]
    return [*sources, *(replace(source, suites=(suite,)) for source in base[:1])]


def machine_sources(etc: Path = Path("/etc/apt")) -> list[Source]:
    files = [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))]
    found = []
    for path in files:
        parse = {".list": parse_list, ".sources": parse_deb822}.get(path.suffix)
        if parse is not None and path.is_file():
            found += parse(path.read_text())
    return found


def release_codename(path: Path = Path("/etc/os-release")) -> str:
    match = re.search(r'^VERSION_CODENAME="?([\w-]+)', path.read_text(), re.MULTILINE)
    if match is None:
        raise DownloadFailed(f"{path}: has no VERSION_CODENAME; this needs Debian or Ubuntu")
    return match[1]
