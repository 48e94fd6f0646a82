"""What runs in the guest: commands and their environment. Pure."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

# In the guest's memory: deployments that are up on this machine must not be met there.
_FOLDER = "/run/atoll-simulate"
_FOLDERS = {"XDG_STATE_HOME": f"{_FOLDER}/state", "XDG_RUNTIME_DIR": f"{_FOLDER}/runtime"}

# The folders, and the board that whoever counts has to write to (native/src/cachesim/board.hpp).
_OPENING = """
install -d -m 700 -o "$1" -g "$2" "$3" "$4" "$5" || exit 1
for device in /sys/bus/pci/devices/*; do
    read vendor < "$device/vendor" && read model < "$device/device"
    if [ "$vendor $model" = "0x1af4 0x1110" ]; then chmod 666 "$device/resource2"; fi
done
"""


def opening(user: int, group: int) -> list[str]:
    """Run first, as root: from then on this user can count, and has folders of its own."""
    folders = [_FOLDER, *_FOLDERS.values()]
    return ["/bin/sh", "-c", _OPENING, "sh", str(user), str(group), *folders]


def as_user(argv: Sequence[str], user: int, group: int, groups: Sequence[int]) -> list[str]:
    """The command, with the rights that its caller has on this machine."""
    if user == 0:
        return list(argv)
    also = ",".join(map(str, groups or [group]))
    return ["setpriv", f"--reuid={user}", f"--regid={group}", f"--groups={also}", "--", *argv]


def environment(given: Mapping[str, str], tools: str) -> dict[str, str]:
    """Of all commands. `tools`: the folder that has atoll-fills."""
    path = given.get("PATH", "/usr/bin:/bin")
    return {**given, **_FOLDERS, "PATH": f"{tools}:{path}"}


def bench(targets: Sequence[str], options: Sequence[str], results: str) -> list[str]:
    return [
        *(sys.executable, "-P", "-m", "atoll", "bench", *options),
        *("-o", results, "--json", "--", *targets),
    ]


def counted(command: Sequence[str], fills: str) -> list[str]:
    """The command under atoll-fills, which writes what it counted to the file `fills`."""
    return ["atoll-fills", "--json", fills, "--", *command]
