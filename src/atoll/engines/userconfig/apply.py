"""Gives an engine the user's own configuration (`--base`)."""

from __future__ import annotations

from dataclasses import replace

from atoll.engines.api import ConfigurableEngine, Engine
from atoll.engines.calls import configured
from atoll.engines.userconfig.tree import UserTree, read_tree
from atoll.errors import UsageError
from atoll.host.api import Host
from atoll.host.caller import environment
from atoll.inspect.listeners import listening_ports


def with_user_tree(
    engine: Engine, root: str | None, host: Host, *, starts: bool = True
) -> tuple[Engine, UserTree | None]:
    """The engine with the configuration in the folder `root`, and that configuration; with None,
    the engine as it is.

    `starts`: the engine is started from here, so the configuration may name variables of this
    environment. Raises UsageError for an engine that takes no configuration, and whatever
    `read_tree` and `ConfigurableEngine.on` raise.
    """
    if root is None:
        return engine, None
    if not isinstance(engine, ConfigurableEngine):
        raise UsageError(
            f"{engine.traits.name} cannot be started with your own configuration; leave out --base"
        )
    tree = read_tree(root, host)
    if starts:
        tree = replace(tree, environment=environment(), taken_ports=listening_ports(host))
    return configured(engine, tree), tree
