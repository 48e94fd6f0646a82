"""What the rest of Atoll knows of Spark."""

from __future__ import annotations

from pathlib import Path

from atoll.engines.facts import EngineFacts
from atoll.engines.java import JAVA_17

FACTS = EngineFacts(
    shared_threads="an executor's threads run the tasks of all stages in turn",
    parts=(JAVA_17,),
    demo=("wim", "wic"),
    dialects=Path(__file__).parent / "dialects",
)
