"""What the rest of Atoll knows of one engine. The engine's own package declares all of it.

An engine has its facts in the attribute `facts`. An engine that declares none has the defaults.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from atoll.install.catalog import Part

# Query -> pairs: the text to look for, and the text that replaces it.
Rewrites = Mapping[str, Sequence[tuple[str, str]]]

# Comments and quoted text in standard SQL, and in its common additions (E'\n', $tag$...$tag$).
STANDARD_SQL = r"""(?P<comment>--[^\n]*|/\*.*?\*/)
    |(?<!\w)[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|(?P<tag>\$\w*\$).*?(?P=tag)"""


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """Facts about one engine, grouped by the command that uses them."""

    # atoll render
    account: str = ""  # the account that the engine's packages create; empty: the engine's name
    home: str = ""  # the folder where those packages put it; empty: /opt/NAME
    stop_signal: str = "SIGTERM"  # the signal that makes the server stop at once, but cleanly
    # Layout.files -> remarks for the rendered README.md, one paragraph each.
    notes: Callable[[Mapping[str, str]], Sequence[str]] | None = None

    # atoll replay
    ports: Mapping[str, int] = field(default_factory=dict)  # URL scheme -> default port
    # A verbose regular expression that matches one comment, in its group `comment`, or one piece
    # of quoted text.
    comments_and_quotes: str = STANDARD_SQL

    # atoll bench: suite -> the changes that its texts need
    rewrites: Mapping[str, Rewrites] = field(default_factory=dict)
    # A folder with SUITE.toml for each suite whose texts need many changes, or of which the engine
    # cannot run all queries (`atoll.suites.dialects`).
    dialects: Path | None = None

    # atoll engine install: what Atoll can fetch; None: nothing, the user installs the engine
    parts: tuple[Part, ...] | None = None

    # atoll up
    # A regular expression for the last line of a log that only says that something was wrong.
    # Atoll then shows the line before it.
    log_summary: str = ""
    # Removes what killed processes left outside their folders. The processes have ended, in this
    # same boot; the folders (the run folder and the scratch folder) are still there.
    leftovers: Callable[[Sequence[Path]], None] | None = None

    # atoll operators apply: why no thread belongs to one operator; empty: some may
    shared_threads: str = ""

    # atoll demo: the policies to compare; empty: the demo leaves the engine out
    demo: tuple[str, ...] = ()

    def fault(self) -> str:
        """What is wrong with the regular expressions; empty if nothing is."""
        try:
            re.compile(self.log_summary)
            quotes = re.compile(self.comments_and_quotes, re.VERBOSE)
        except re.error as fault:
            return f"its facts contain a wrong regular expression ({fault})"
        return "" if "comment" in quotes.groupindex else "its facts have no group 'comment'"


def facts_of(engine: object) -> EngineFacts:
    """The facts that the engine declares, else the defaults."""
    found: EngineFacts = getattr(engine, "facts", EngineFacts())
    return found
