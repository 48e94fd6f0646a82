"""JCC-H: TPC-H's tables and queries with skew that crosses joins.

'q1' to 'q22' have the parameters that meet the skew, 'q1p' to 'q22p' plain ones; a seed draws both.
The reference gives the answers, on the same data. A text is TPC-H's in the engine's dialect, with
other parameters in it.
"""

from __future__ import annotations

from collections.abc import Mapping

from atoll.engines.api import Progress
from atoll.errors import UsageError
from atoll.host.api import Host
from atoll.suites import jcch_data, reference
from atoll.suites.answers import by_reference
from atoll.suites.base import Answer, DataSet
from atoll.suites.dialects import dialect_of
from atoll.suites.jcch_queries import NUMBERS, PLAIN, with_parameters

QUERY_NAMES = tuple(f"q{number}{suffix}" for suffix in ("", PLAIN) for number in NUMBERS)


class Jcch:
    """See `atoll.suites.base.Suite`."""

    tables = jcch_data.TABLES
    query_names = QUERY_NAMES

    def __init__(self, seed: int = 1) -> None:
        self._seed = seed

    @property
    def name(self) -> str:
        return "jcch" if self._seed == 1 else f"jcch:{self._seed}"

    def queries(self, engine: str) -> Mapping[str, str]:
        texts = dialect_of(engine, "tpch").texts(reference.query_texts("tpch"))
        return dialect_of(engine, "jcch").texts(with_parameters(texts, self._seed))

    def ensure_data(self, scale_factor: float, *, host: Host, progress: Progress) -> DataSet:
        return jcch_data.ensure_data(scale_factor, host=host, progress=progress)

    def expected(self, query: str, data: DataSet) -> Answer:
        if query not in QUERY_NAMES:
            raise UsageError(f"jcch has no query {query!r}; it has q1 to q22 and q1p to q22p")
        return by_reference(with_parameters(reference.query_texts("tpch"), self._seed)[query], data)
