"""See to it that guests can boot: QEMU, a kernel and an initramfs in the cache.

    python -m tools.ensure_guest

Tests would fetch them too, but pytest keeps back what that says. Exit 0 with the paths on
stdout; 6 with one line if they are not available.
"""

from __future__ import annotations

import sys

from atoll.errors import AtollError
from atoll.guest import image


def main() -> int:
    try:
        found = image.ensure()
    except AtollError as fault:
        print(f"ensure_guest: {fault}", file=sys.stderr)
        return fault.exit_code
    print(f"guest: {found.kernel.name}, QEMU in {found.qemu}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
