"""Fetches engines and their JDKs into Atoll's cache, checks, unpacks and removes them.

Every part has a folder of its own, `cache_dir("engines") / NAME`, whole or not at all.
"""

from __future__ import annotations

from atoll.install.parts import installed

__all__ = ["installed"]
