"""Bytes and shares as people read them."""

from __future__ import annotations

MIB = 1 << 20
GIB = 1 << 30
TIB = 1 << 40


def gib(size_bytes: int) -> str:
    """'1.5 TiB', '512 GiB', '15.6 GiB', '640 MiB', '512 KiB'."""
    for unit, name in ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (1 << 10, "KiB")):
        if size_bytes >= unit:
            value = size_bytes / unit
            digits = 0 if value >= 100 or size_bytes % unit == 0 else 1
            return f"{value:.{digits}f} {name}"
    return f"{size_bytes} B"


def percent(share: float) -> str:
    """'3 %' of 0.03."""
    return f"{100 * share:.0f} %"
