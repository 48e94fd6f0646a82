from __future__ import annotations

from pathlib import Path

import pytest

from atoll.errors import UsageError
from atoll.schema.deployment import ProcessSpec, Role
from atoll.schema.rendered import FILE, Rendered
from atoll.store.plan_file import read_rendered
from tests.parts.toy import toy_plan


def test_a_rendered_process_has_a_slot_of_the_plan_beside_it(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(toy_plan(2).model_dump_json())

    def write(slot: int) -> None:
        spec = ProcessSpec(
            name=f"worker-{slot}", role=Role.WORKER, slot=slot, argv=("x",), env={}, stage=0
        )
        rendered = Rendered(name="sea", mark="m", processes=(spec,))
        (tmp_path / FILE).write_text(rendered.model_dump_json())

    write(1)
    assert read_rendered(str(tmp_path))[0].processes[0].slot == 1
    write(2)
    with pytest.raises(UsageError, match="worker-2 has slot 2, but the plan has 2; render"):
        read_rendered(str(tmp_path))
