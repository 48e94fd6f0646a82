"""QEMU's arguments for a guest whose caches are simulated (docs/simulated.md)."""

from __future__ import annotations

from pathlib import Path

from atoll.guest import caches, native
from atoll.guest.topology import Topology

BOARD_BYTES = 1 << 20  # native/src/cachesim/board.hpp
QUANTUM_CYCLES = 10_000

# TCG executes `rep stosb` byte by byte, so a kernel that prefers it would store 64 times a line.
HIDDEN = ("erms", "fsrm")


def arguments(topology: Topology, quantum: int, folder: Path) -> list[str]:
    """Finds the plugin, and writes its files into the guest's folder.

    Raises TopologyRefused and NoImage.
    """
    plugin, machine, board = native.plugin(), folder / "machine", folder / "board"
    machine.write_text(caches.describe(topology, quantum))
    board.write_bytes(bytes(BOARD_BYTES))
    built, described, shared = (str(path).replace(",", ",,") for path in (plugin, machine, board))
    return [
        *("-plugin", f"{built},machine={described},board={shared}"),
        "-object",
        f"memory-backend-file,id=board,share=on,size={BOARD_BYTES},mem-path={shared}",
        *("-device", "ivshmem-plain,memdev=board"),
    ]
