"""What the rest of Atoll knows of Flink."""

from __future__ import annotations

from atoll.engines.facts import EngineFacts
from atoll.engines.flink.settings import VERSION
from atoll.engines.java import JAVA_17
from atoll.install.catalog import Part, Sdist

PART = f"flink-{VERSION}"

FACTS = EngineFacts(
    parts=(
        Part(
            PART,
            VERSION,
            Sdist(
                "apache-flink-libraries",
                VERSION,
                "eec27ffa86d01184de7f5ab668c479c83cdb75ebc7fba8091307da4f1a9d3348",
                f"apache_flink_libraries-{VERSION}/deps",
            ),
            312_504_331,
            329_515_240,
            "Apache-2.0",
        ),
        JAVA_17,
    ),
)
