"""Inside the guest: several JVMs, each under a binding of its own, inspected while they run.

    python -m tests.vm.inside.jvms REQUEST ANSWER

The request is a JSON list of command lines, each of a JVM that says 'ready'; the answer has the
inspection of each. They start together: a JVM takes seconds to start here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from atoll.host.local import LocalHost
from atoll.inspect.clues import read_numa_system
from atoll.inspect.inspection import inspect_process

TRIES = 5


def main(request: Path, answer: Path) -> int:
    host = LocalHost()
    jvms = [
        subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        for argv in json.loads(request.read_text())
    ]
    looks = []
    try:
        for jvm in jvms:
            assert jvm.stdout is not None
            while (said := jvm.stdout.readline()) != b"ready\n":
                assert said, f"a JVM ended with status {jvm.wait()}"
        machine = read_numa_system(host)
        for jvm in jvms:
            # On a busy host a JVM may take longer to answer than Atoll waits for it.
            for _ in range(TRIES):
                look = inspect_process(host, jvm.pid, machine)
                if not look.unknown:
                    break
            looks.append(look.model_dump(mode="json", include={"jvm", "unknown", "findings"}))
    finally:
        for jvm in jvms:
            jvm.kill()
            jvm.wait()
    answer.write_text(json.dumps(looks))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
