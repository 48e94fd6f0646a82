"""`atoll fleet` as a user runs it, against a host on loopback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from atoll.cli import run
from tests.parts.ssh_server import Said, answering, ends, served


def test_answers_are_printed_though_they_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept"
    (kept / "discover.json").mkdir(parents=True)
    with served(tmp_path, answering(Said(), ends(1, stderr="atoll: no"))) as reach:
        host = {
            name: getattr(reach, name)
            for name in ("name", "address", "port", "user", "key_file", "known_hosts")
        }
        document = {"format": "atoll/inventory", "version": 1, "hosts": [host]}
        inventory = tmp_path / "hosts.json"
        inventory.write_text(json.dumps(document))
        argv = ["fleet", "discover", str(inventory), "--json", "-o"]
        assert run([*argv, str(kept)]) == 2
        printed = capsys.readouterr()
        assert json.loads(printed.out)["hosts"][0]["error"] == "no"
        assert "discover.json: is a folder" in printed.err
        assert run([*argv, str(tmp_path / "new")]) == 1
        assert f"results: {tmp_path / 'new'}\n" in capsys.readouterr().err
    assert (tmp_path / "new/discover.json").exists()
