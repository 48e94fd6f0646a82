"""The runtime's C++ programs for guests, of the release build."""

from __future__ import annotations

from atoll.guest.native import built


def program(name: str, room: str = "guests") -> str:
    """The path of `name` from native/tests/runtime/`room`, up to date."""
    return built(name, f"native/tests/runtime/{room}/{name}")
