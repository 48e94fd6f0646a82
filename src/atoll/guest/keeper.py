"""Keep QEMU for as long as the process that wants the guest lives, and clean up after both.

    python -m atoll.guest.keeper WATCHED SOCKET FOLDER QEMU...

Run as a session of its own, so that Ctrl-C reaches only the one who can clean up. The end of
the socket WATCHED says that the guest is no longer wanted: also kill -9 closes its other side. If
the keeper itself is killed, the kernel kills QEMU (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import os
import shutil
import signal
import sys

from atoll.host import processes
from atoll.host.caller import environment


def main() -> int:
    watched, socket, folder, *qemu = sys.argv[1:]
    # A TERM to all processes, as when a service is stopped, ends the other one too. Handled, not
    # ignored: QEMU would inherit that.
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    child = processes.start(
        qemu,
        env=environment(),
        log=f"{folder}/qemu.err",
        tied_by=signal.SIGKILL,
        pass_fds=[int(socket)],
    )
    os.close(int(socket))  # so that the guest's end closes when QEMU ends
    os.read(int(watched), 1)
    child.signal(signal.SIGKILL)
    status = child.wait()
    shutil.rmtree(folder, ignore_errors=True)
    return status & 0xFF


if __name__ == "__main__":
    sys.exit(main())
