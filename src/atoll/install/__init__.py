"""Engines, and the JDKs that they need, in Atoll's cache: fetched, checked, unpacked, removed.

Every part lies in a folder of its own, `cache_dir("engines") / NAME`, whole or not at all.
"""

from __future__ import annotations

from atoll.install.parts import installed

__all__ = ["installed"]
