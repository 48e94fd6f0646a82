"""Keep QEMU for as long as the process that wants the guest lives, and clean up after both.

    python3 -I -S keeper.py SOCKET FOLDER QEMU...

Run as a session of its own, so that Ctrl-C reaches only the one who can clean up. The end of
stdin says that the guest is no longer wanted: also kill -9 ends that process's pipe. If the
keeper itself is killed, the kernel kills QEMU (PR_SET_PDEATHSIG).
"""

import os
import shutil
import signal
import subprocess
import sys


def main() -> int:
    socket, folder, qemu = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    # A TERM to all processes, as when a service is stopped, ends the other one too. Handled, not
    # ignored: QEMU would inherit that.
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    child = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "--", *qemu],
        stdin=subprocess.DEVNULL,
        pass_fds=[socket],
    )
    os.close(socket)  # so that the guest's end closes when QEMU ends
    sys.stdin.buffer.read()
    child.kill()
    status = child.wait()
    shutil.rmtree(folder, ignore_errors=True)
    return status & 0xFF


if __name__ == "__main__":
    sys.exit(main())
