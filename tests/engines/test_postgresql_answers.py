"""PostgreSQL with a suite loaded: answers of real deployments, and loading that is disturbed."""

from __future__ import annotations

from pathlib import Path

import pytest

from atoll.engines.postgresql.client import PostgreSQLClient
from tests.parts.loading import check_answers, check_loading_survives, check_values
from tests.parts.server import up

pytestmark = pytest.mark.installed


def test_all_answers_are_right_under_two_policies() -> None:
    check_answers("postgresql")


def test_every_value_is_loaded_as_it_is(tmp_path: Path) -> None:
    check_values("postgresql", tmp_path)


def test_loading_survives_a_kill_and_happens_once(tmp_path: Path) -> None:
    check_loading_survives("postgresql", tmp_path)


def test_a_users_configuration_is_used_and_not_changed(tmp_path: Path) -> None:
    """As Debian has it: TLS with a key of another account's, an empty folder that is included."""
    base = tmp_path / "main"
    (base / "conf.d").mkdir(parents=True)
    (base / "postgresql.conf").write_text(
        "data_directory = '/nix'\nhba_file = '/nix/pg_hba.conf'\nport = 5432\nssl = on\n"
        "ssl_key_file = '/nix/key'\nexternal_pid_file = '/nix/pid'\nwork_mem = 7MB\n"
        "include_dir = 'conf.d'\n"
    )
    # A user's file as it may be; Atoll's own takes its place, and nothing listens on an address.
    (base / "pg_hba.conf").write_text("host all all 0.0.0.0/0 scram-sha-256\n")
    (base / "start.conf").write_text("auto\n")
    before = {path: path.stat().st_mtime_ns for path in base.rglob("*")}
    with up("postgresql", "pg-base", "wim", "--base", str(base)) as record:
        client = PostgreSQLClient.at(record.endpoints[0], timeout_s=60)
        names = ("work_mem", "ssl", "listen_addresses", "data_directory")
        sql = "select " + ", ".join(f"current_setting('{name}')" for name in names)
        assert client.execute(sql, timeout_s=60).rows == [
            ("7MB", "off", "", f"{record.scratch_dir}/data-0")
        ]
        client.close()
    assert {path: path.stat().st_mtime_ns for path in base.rglob("*")} == before
