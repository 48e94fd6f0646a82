"""What an engine's package knows of its processes' ends. Imported then: the keeper stays small."""

from __future__ import annotations

import contextlib
from pathlib import Path

from atoll.schema.deployment import Deployment


def remove_leftovers(deployment: Deployment) -> None:
    """Remove what killed processes left outside the folders of their deployment.

    The processes must have ended, in this same boot, and the folders must still exist. Raises
    nothing: a fault in an engine's package must not keep the folders.
    """
    folders = [Path(folder) for folder in {deployment.run_dir, deployment.scratch_dir}]
    with contextlib.suppress(Exception):
        from atoll.engines import registry
        from atoll.engines.facts import facts_of

        if remove := facts_of(registry.get(deployment.plan.engine)).leftovers:
            remove(folders)


def log_summary(engine: str) -> str:
    """`EngineFacts.log_summary`; empty where the engine cannot be loaded any more."""
    from atoll.engines import registry
    from atoll.engines.facts import facts_of
    from atoll.errors import AtollError

    try:
        return facts_of(registry.get(engine)).log_summary
    except AtollError:
        return ""
