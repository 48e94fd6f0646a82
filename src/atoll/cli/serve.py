"""`atoll serve`: the live view in a browser, and metrics for Prometheus."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import click

from atoll.cli.options import machine_for, rendered_option
from atoll.errors import AtollError, UsageError
from atoll.host.listening import allow_files, listen
from atoll.host.local import LocalHost
from atoll.schema.live import LiveView
from atoll.schema.plan import LOOPBACK

if TYPE_CHECKING:
    from atoll.live.server import LiveServer
    from atoll.live.watcher import Watcher

_PORT = 9775
_OTHER_FILES = 200  # open files that are not streams: other connections, and what a look reads


@click.command(
    epilog="Examples: atoll serve; atoll serve --port 0; on another machine: "
    "ssh -L 9775:127.0.0.1:9775 NODE"
)
@click.option(
    "--listen",
    "address",
    metavar="ADDRESS",
    default=LOOPBACK,
    help="Serve at this IP address (default: 127.0.0.1). HTTP is not encrypted, so at another than "
    "a loopback address the token can be read in the network.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=_PORT,
    help=f"TCP port (default: {_PORT}; 0: any that is free).",
)
@click.option(
    "--token-file",
    metavar="FILE",
    help="The token that clients need; made, with mode 0600, if missing (default: below "
    "~/.local/state/atoll).",
)
@rendered_option
def command(address: str, port: int, token_file: str | None, rendered: tuple[str, ...]) -> None:
    """Serve the live view of all your deployments to a browser, and metrics to Prometheus.

    The URL to open is printed at a terminal, with its token; elsewhere only the token's file is.
    Prometheus reads /metrics with that token as a bearer token. Drift that begins or ends is
    reported on stderr. SIGTERM or Ctrl-C ends it.
    """
    from atoll.live.server import STREAMS, File, LiveServer
    from atoll.live.watcher import Watcher
    from atoll.report.live_page import live_files, live_pictures
    from atoll.store.paths import state_dir
    from atoll.store.plan_file import read_rendered
    from atoll.store.tokens import token_in

    ip = _parsed(address)
    path = Path(token_file) if token_file else state_dir("serve") / "token"
    token, machine = token_in(path), machine_for()
    try:
        listener = listen(str(ip), port)
    except OSError as fault:
        raise UsageError(
            f"{ip} port {port}: {fault.strerror or fault}; give another --port or --listen"
        ) from None
    port = listener.getsockname()[1]
    shown = f"[{ip}]" if ip.version == 6 else str(ip)
    hosts = frozenset({shown, "localhost", "127.0.0.1", "[::1]"})
    streams = max(1, min(STREAMS, allow_files(STREAMS + _OTHER_FILES) - _OTHER_FILES))
    watcher = Watcher(LocalHost(), rendered=[read_rendered(folder) for folder in rendered])
    server = LiveServer(
        token,
        hosts,
        {name: File(*file) for name, file in live_files().items()},
        lambda: live_pictures(machine, watcher.plans()),
        streams=streams,
    )
    secret = f"#token={token}" if sys.stdout.isatty() else f" (its token is in {path})"
    print(f"http://{shown}:{port}/{secret}", flush=True)
    if not ip.is_loopback:
        print("atoll: HTTP is not encrypted: who reads the network gets the token", file=sys.stderr)
    asyncio.run(_serve(server, watcher, listener, _report()))


def _parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The sockets take more spellings, of which some mean all interfaces: '0', '::ffff:0.0.0.0'."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        raise UsageError(f"--listen {address!r}: not an IP address; give one, like ::1") from None
    if isinstance(ip, ipaddress.IPv6Address):
        ip = ip.ipv4_mapped or ip
    if ip.is_unspecified:
        raise UsageError(f"--listen {address!r}: name the address of one network interface")
    return ip


async def _serve(
    server: LiveServer,
    watcher: Watcher,
    listener: socket.socket,
    report: Callable[[LiveView], None],
) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    failed = ""
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(server.serve(listener))
        with ThreadPoolExecutor(1, "looks") as looks:  # one thread, whose CPU time is counted
            while not ended.is_set():
                try:
                    view = await loop.run_in_executor(looks, watcher.look)
                except (OSError, AtollError) as fault:  # clients keep the view before
                    if str(fault) != failed:
                        print(f"atoll: a look failed: {fault}", file=sys.stderr, flush=True)
                    failed = str(fault)
                else:
                    failed = ""
                    server.publish(view)
                    report(view)
                try:
                    async with asyncio.timeout(watcher.pause_s):
                        await ended.wait()
                except TimeoutError:
                    continue
        serving.cancel()


def _report() -> Callable[[LiveView], None]:
    from atoll.live.changes import changes

    before: list[LiveView] = []

    def report(view: LiveView) -> None:
        for line in changes(before[-1] if before else None, view):
            print(line, file=sys.stderr, flush=True)
        before[:] = [view]

    return report
