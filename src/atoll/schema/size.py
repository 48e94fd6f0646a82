"""Formats bytes and shares for people, and parses sizes."""

from __future__ import annotations

import re

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


def decimal_size(size_bytes: int) -> str:
    """'821 MB', '2.08 GB': in powers of ten, as registries report sizes."""
    return f"{size_bytes / 1e9:.2f} GB" if size_bytes >= 1e9 else f"{size_bytes / 1e6:.0f} MB"


def bit_rate(mbit_s: int) -> str:
    """'10 Gbit/s', '2.5 Gbit/s', '100 Mbit/s'."""
    return f"{mbit_s / 1000:g} Gbit/s" if mbit_s >= 1000 else f"{mbit_s} Mbit/s"


def percent(share: float) -> str:
    """'3 %' of 0.03."""
    return f"{100 * share:.0f} %"


_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,18})?) ?(?:([KMGT])(iB|B)?|B)?", re.ASCII)


def parse_size(text: str) -> int:
    """Bytes of '40GiB', '40G' (the same), '40GB' (40e9), '1.5 TiB' or '512'.

    Raises ValueError for any other text.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size; use for example 40GiB, 512MiB or 40GB")
    number, prefix, suffix = match.groups()
    base = 1000 if suffix == "B" else 1024
    return int(float(number) * base ** (" KMGT".index(prefix) if prefix else 0))
