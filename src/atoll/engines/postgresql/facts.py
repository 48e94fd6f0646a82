"""What the rest of Atoll knows of PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from atoll.engines.facts import EngineFacts
from atoll.engines.postgresql.leftovers import remove_segments
from atoll.install.catalog import MB, Packages, Part

FACTS = EngineFacts(
    account="postgres",
    home="/usr/lib/postgresql/15/bin",
    # At SIGTERM it waits for its last client (PostgreSQL's manual, Shutting Down the Server).
    stop_signal="SIGINT",
    ports={"postgresql": 5432, "postgres": 5432},
    parts=(
        Part(
            "postgresql-15",
            "15",
            Packages(("postgresql-15",), with_depends=True),
            19 * MB,
            68 * MB,
            "PostgreSQL",
        ),
    ),
    log_summary=r"configuration file .* contains errors$",
    leftovers=remove_segments,
    dialects=Path(__file__).parent / "dialects",
)
