"""A small SQL client for every engine that Atoll starts.

    python -m atoll.engines.sql.shell ENGINE ENDPOINT [SQL]

For engines that bring no client of their own, such as those behind Atoll's SQL host. Without SQL it
reads statements from stdin; a statement ends at a line that ends with a semicolon. Columns are
separated by tabs. The exit status is that of the last fault (`atoll.errors`), or 0.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
from collections.abc import Iterator

from atoll.engines import registry
from atoll.engines.api import Client
from atoll.engines.calls import connected
from atoll.errors import AtollError, ServerGone
from atoll.schema.text import plural

_CONNECT_S = 10.0
_QUERY_S = 86400.0  # until Ctrl-C


def shell_command(engine: str, endpoint: str) -> str:
    """The command that starts this client, for a POSIX shell."""
    program = (sys.executable, "-P", "-m", "atoll.engines.sql.shell")
    return shlex.join((*program, engine, endpoint))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="atoll.engines.sql.shell")
    parser.add_argument("engine")
    parser.add_argument("endpoint")
    parser.add_argument("sql", nargs="?")
    arguments = parser.parse_args(argv)
    status = 0
    try:
        (client,) = connected(
            registry.get(arguments.engine), [arguments.endpoint], timeout_s=_CONNECT_S
        )
        with contextlib.closing(client):
            for sql in [arguments.sql] if arguments.sql else _statements():
                status = _answer(client, sql) or status
    except AtollError as fault:
        status = _report(fault)
    except (KeyboardInterrupt, BrokenPipeError):
        status = 130
    return status


def _answer(client: Client, sql: str) -> int:
    """Print the answer, or what is wrong with the query. Raises ServerGone."""
    try:
        found = client.execute(sql, timeout_s=_QUERY_S)
    except ServerGone:
        raise
    except AtollError as fault:
        return _report(fault)
    if found.columns:
        print(*(column.name for column in found.columns), sep="\t")
    for row in found.rows:
        print(*("NULL" if value is None else value for value in row), sep="\t")
    sys.stdout.flush()
    took = f"{plural(len(found.rows), 'row')}, {found.engine_seconds:.3f} s"
    print(f"({took})", file=sys.stderr)
    return 0


def _report(fault: AtollError) -> int:
    print(f"error: {fault}", file=sys.stderr)
    return fault.exit_code


def _statements() -> Iterator[str]:
    """Statements from stdin, without their semicolons."""
    lines: list[str] = []
    for line in _lines():
        lines.append(line)
        if line.rstrip().endswith(";"):
            yield "\n".join(lines).rstrip().removesuffix(";")
            lines = []
    if rest := "\n".join(lines).strip():
        yield rest


def _lines() -> Iterator[str]:
    if not sys.stdin.isatty():
        yield from (line.rstrip("\n") for line in sys.stdin)
        return
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - gives input() a history
    with contextlib.suppress(EOFError):
        while True:
            yield input("sql> ")


if __name__ == "__main__":
    sys.exit(main())
