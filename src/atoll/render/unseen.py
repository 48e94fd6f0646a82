"""Engines that Atoll cannot run, for which it can still write a deployment.

Neither can be had without a licence or an account, so what is written rests on their public
documentation alone and says so: 'rendered, not run'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from atoll.render import greenplum, singlestore
from atoll.render.deployment import Rendering, Target
from atoll.schema.plan import EngineTraits, Plan, Policy


@dataclass(frozen=True, slots=True)
class Unseen:
    traits: EngineTraits
    policy: Policy  # what its makers recommend
    render: Callable[[Plan, Target], Rendering]


ENGINES: Mapping[str, Unseen] = {
    "singlestore": Unseen(singlestore.TRAITS, Policy.WIN, singlestore.render),
    "greenplum": Unseen(greenplum.TRAITS, Policy.WIC, greenplum.render),
}
