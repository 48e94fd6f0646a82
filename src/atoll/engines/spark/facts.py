"""What the rest of Atoll knows of Spark."""

from __future__ import annotations

from pathlib import Path

from atoll.engines.facts import EngineFacts
from atoll.install.catalog import MB, Java, Packages, Part

FACTS = EngineFacts(
    shared_threads="an executor's threads run the tasks of all stages in turn",
    parts=(
        Part(
            "openjdk-17",
            "17",
            Packages(("openjdk-17-jre-headless",), with_depends=False),
            44 * MB,
            194 * MB,
            "GPL-2.0 with the classpath exception",
            Java(17),
        ),
    ),
    demo=("wim", "wic"),
    dialects=Path(__file__).parent / "dialects",
)
