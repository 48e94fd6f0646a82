"""The files of a run's data: dropped from the page cache, and unchanged as long as the run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from atoll.bench import pagecache
from atoll.errors import EngineFailed, UsageError


@dataclass(frozen=True, slots=True)
class Files:
    """The user's files are `watched`; Atoll's own have been verified."""

    paths: Sequence[str] = ()  # none: the data belongs to the engine
    watched: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # path -> bytes, mtime_ns

    @classmethod
    def watching(cls, paths: Sequence[str]) -> Files:
        return cls(paths, {path: _stamp(path) for path in paths})

    def drop_from_cache(self) -> float | None:
        """See `atoll.bench.api.Work`. Raises as `require_unchanged`."""
        self.require_unchanged()
        try:
            return pagecache.drop(self.paths) if self.paths else None
        except OSError as fault:
            raise EngineFailed(
                f"{fault.filename}: cannot read the data ({fault.strerror}); "
                "run the command again to regenerate it"
            ) from None

    def require_unchanged(self) -> None:
        """Raises UsageError if a watched file has changed or is gone."""
        for path, stamp in self.watched.items():
            try:
                same = _stamp(path) == stamp
            except OSError:
                same = False
            if not same:
                raise UsageError(
                    f"{path}: changed while the bench ran; the results so far are kept, "
                    "start a new file with -o"
                )


def _stamp(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns
