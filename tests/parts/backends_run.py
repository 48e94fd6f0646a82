"""`python -m tests.parts.backends_run FOLDER`: profiles, packs, places and checks four backends of
a real PostgreSQL, with the commands too, and prints what was found as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

from atoll.engines.postgresql.operators.backends import PostgreSQLBackends, statements
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.operators.place import place
from atoll.operators.verify import verify
from atoll.schema.operator_graph import OperatorGraph

KINDS = ("item", "low-stock", "visit", "search-title")


def atoll(*arguments: str) -> str:
    argv = [sys.executable, "-m", "atoll", "operators", *arguments]
    done = subprocess.run(argv, capture_output=True, text=True)
    return f"{done.returncode}\n{done.stdout}{done.stderr}"


def main(folder: Path) -> None:
    host, machine = LocalHost(), read_machine()
    program = PostgreSQLBackends(tuple(one for one in statements() if one.name in KINDS))
    (folder / "run").mkdir()
    cpus = sorted(host.affinity(0))
    found: dict[str, object] = {}
    with program.start(host, folder / "run", cpus) as running:
        graph = running.profile(3)
        found["operators"] = [one.id for one in graph.operators]
        found["duties"] = [one.activity.duty.value for one in graph.operators if one.activity]
        packed = place(graph, machine)
        running.place(packed)
        found["cores"] = len(packed.cores)
        found["faults"] = verify(host, running.threads(), packed).faults
        measured = running.measure(3)
        found["windows"] = len(measured.per_window)
        found["rate"] = sum(measured.per_window) / 3
        running.place(place(graph, machine, deployment="os"))

        path = running.clients[0].path
        url = f"postgresql://atoll@/postgres?host={quote(str(Path(path).parent))}&port=5432"
        seen, plan = folder / "graph.json", folder / "packed.json"
        found["profile"] = atoll(
            *("profile", "postgresql", "--url", url, "--seconds", "2", "-o", str(seen))
        )
        outside = OperatorGraph.model_validate_json(seen.read_text())
        found["seen"] = [one.id for one in outside.operators]
        found["plan"] = atoll("plan", str(seen), "-o", str(plan))
        found["apply"] = atoll("apply", str(plan), "--url", url)
        found["bound"] = [sorted(host.affinity(one.tid)) for one in running.threads()]
        found["watch"] = atoll("watch", str(plan), str(seen), "--url", url, "--for", "1s")
        found["undo"] = atoll("undo")
        found["restored"] = [sorted(host.affinity(one.tid)) for one in running.threads()]
    found["cpus"] = cpus
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
