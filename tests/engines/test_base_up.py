"""A server with a user's own configuration, which stays as it is: `atoll up --base`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parts.postgresql import ask
from tests.parts.render import state_of
from tests.parts.server import atoll, record_of, succeed, traces

pytestmark = pytest.mark.installed


def test_a_server_runs_on_a_users_configuration_that_stays_as_it_is(tmp_path: Path) -> None:
    base = tmp_path / "it's mine"
    (base / "conf.d").mkdir(parents=True)
    (base / "postgresql.conf").write_text(
        "# ours since 2019\nshared_buffers = 900GB  # the big machine\nwork_mem = 7MB\n"
        "include_dir 'conf.d'\n"
    )
    (base / "conf.d" / "more.conf").write_text("cluster_name = 'prod'\nidle_session_timeout = 5s\n")
    for path in (*base.rglob("*"), base):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = state_of(base)
    name = "base-up"
    done = atoll("up", "postgresql", "--base", str(base), "--policy", "wim", "--name", name, "-d")
    try:
        assert done.returncode == 0, done.stderr
        assert f"\n  {base}/postgresql.conf\n    shared_buffers: 900GB -> " in done.stderr
        assert "cluster_name" not in done.stderr
        record = record_of(name)
        assert ask(record, "select current_setting('work_mem')") == [[("7MB",)]]
        assert ask(record, "select current_setting('cluster_name')") == [[("prod",)]]
        assert ask(record, "select current_setting('shared_buffers')") != [[("900GB",)]]
        # A bench's session has to be there after a long pass of others; users' have their limit.
        assert ask(record, "select current_setting('idle_session_timeout')") == [[("0",)]]
        sql = "select setting from pg_file_settings where name = 'idle_session_timeout'"
        assert ask(record, sql) == [[("5s",)]]
    finally:
        succeed("down", name)
    assert state_of(base) == before
    assert traces(record) == []


def test_a_setting_that_the_server_refuses_is_reported_in_the_users_file(tmp_path: Path) -> None:
    """The server knows only Atoll's copy of the file."""
    base = tmp_path / "mine"
    base.mkdir()
    base.chmod(0o755)
    (base / "postgresql.conf").write_text("shared_buffers = 9GB  # ours\nnosuch_setting = 5\n")
    done = atoll("up", "postgresql", "--base", str(base), "--policy", "wim", "--name", "refused")
    assert done.returncode == 5
    assert f'"nosuch_setting" in file "{base}/postgresql.conf" line 2' in done.stderr
