"""`atoll measure`: measure this machine and find its chiplets."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import click

from atoll.cli.terminal import can_draw, has_colour, show, width
from atoll.errors import AtollError, NotPermitted, UsageError
from atoll.probing import profiles
from atoll.schema.cpulist import format_cpulist
from atoll.schema.profile import Kind, Mode, Profile
from atoll.store.files import write_atomic
from atoll.store.paths import state_dir
from atoll.supervise.interrupts import terminate_is_interrupt

_MOST_CSV_BYTES = 256 << 20


@click.command(
    epilog="Examples: atoll measure; atoll measure --full -o profile.json; "
    "atoll measure --only latency,bandwidth --cpus 0-15; atoll measure --latency-csv c2c.csv --json"
)
@click.option("--quick", is_flag=True, help="Finish within 30 s (default).")
@click.option("--full", is_flag=True, help="Measure all pairs (about 5 min on 2 cores).")
@click.option(
    "--only", metavar="KIND,...", help=f"Which kinds to measure: {', '.join(Kind)} (default: all)."
)
@click.option("--cpus", metavar="SET", help='CPUs to measure, for example "0-3,8" (default: all).')
@click.option("-o", "--output", metavar="FILE", help="Also write the profile to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print the profile as JSON.")
@click.option(
    "--latency-csv",
    metavar="FILE",
    help="Infer chiplets from this matrix, or list of a,b,ns, instead of measuring.",
)
@click.option(
    "--bandwidth-csv", metavar="FILE", help="The same with a matrix in GB/s; you may give both."
)
def command(
    quick: bool,
    full: bool,
    only: str | None,
    cpus: str | None,
    output: str | None,
    as_json: bool,
    latency_csv: str | None,
    bandwidth_csv: str | None,
) -> None:
    """Measure this machine and find its chiplets: latency and bandwidth between cores and to
    memory, caches, STREAM, allocators.

    Atoll saves the profile in its state folder, where topo and plan find it. With --latency-csv
    or --bandwidth-csv it infers the chiplets of any machine from a matrix ("-" is stdin).
    """
    if latency_csv is not None or bandwidth_csv is not None:
        _refuse_measuring(quick, full, *(one is not None for one in (only, cpus, output)))
        _infer(latency_csv, bandwidth_csv, as_json)
        return
    if quick and full:
        raise UsageError("give either --quick or --full, not both")
    if output is not None:
        refuse_unwritable(output)
    state_dir("profiles")  # fails now and not after the measurement
    with terminate_is_interrupt():
        profile = measure_here(Mode.FULL if full else Mode.QUICK, only, cpus)
        path, fault = keep(profile, output)
    if as_json:
        click.echo(profile.model_dump_json(indent=2))
    else:
        show_profile(profile)
    if path is not None:
        click.echo(f"atoll: profile: {path}", err=True)
    if fault is not None:
        raise fault


def measure_here(mode: Mode, only: str | None, cpus: str | None) -> Profile:
    # Imported here: a matrix from a file needs none of this.
    from atoll.host.cpu_times import process_started_s
    from atoll.host.local import LocalHost
    from atoll.host.topology import read_machine
    from atoll.probing.measure import chosen_cpus, chosen_kinds, estimate_s, measure_machine
    from atoll.report.profile.progress import measure_progress

    host, machine = LocalHost(), read_machine()
    kinds = chosen_kinds(only)
    chosen = chosen_cpus(machine, host, cpus)
    seconds = estimate_s(mode=mode, only=kinds, machine=machine, cpus=chosen)
    click.echo(
        f"atoll: measuring CPUs {format_cpulist(chosen)}, {mode.value}: at most "
        f"{_duration(seconds)}; other work on this machine distorts the figures",
        err=True,
    )
    with measure_progress(kinds) as progress:
        return measure_machine(
            host,
            machine,
            mode=mode,
            only=kinds,
            cpus=chosen,
            progress=progress,
            # Starting can take seconds on a busy machine, and they count.
            started_s=process_started_s(host),
        )


def keep(profile: Profile, output: str | None) -> tuple[Path | None, AtollError | None]:
    """Save the profile; returns its path and the first fault, so the figures are still shown."""
    fault: AtollError | None = None
    path: Path | None = None
    try:
        path = profiles.save(profile)
    except AtollError as found:
        fault = found
    if output is not None:
        try:
            write_atomic(output, profile.model_dump_json(indent=2) + "\n")
            path = Path(output)
        except AtollError as found:
            fault = fault or found
    return path, fault


def show_profile(profile: Profile) -> None:
    from atoll.report.profile.text import profile_text

    show(profile_text(profile, colour=has_colour(), ascii_only=not can_draw()))


def _refuse_measuring(*given: bool) -> None:
    if any(given):
        raise UsageError(
            "--latency-csv and --bandwidth-csv measure nothing; leave out --quick, --full, --only, "
            "--cpus and -o"
        )


def refuse_unwritable(output: str) -> None:
    """Raises UsageError or NotPermitted now, not after minutes of measuring."""
    path = Path(output)
    if output == "-":
        raise UsageError("-o -: name a file; --json prints on stdout")
    if path.is_dir():
        raise UsageError(f"{output}: is a folder; name a file")
    if not path.parent.is_dir():
        raise UsageError(f"{output}: its folder does not exist; create it first")
    try:
        if not path.exists() or path.is_file():
            tempfile.TemporaryFile(dir=path.resolve().parent).close()
        elif not os.access(path, os.W_OK):  # a device or a pipe, which opening would affect
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as fault:
        raise NotPermitted(f"{output}: cannot be written ({fault.strerror})") from None


def _infer(latency_csv: str | None, bandwidth_csv: str | None, as_json: bool) -> None:
    from atoll.infer.chiplets import infer
    from atoll.infer.matrix import parse_matrix

    if latency_csv == "-" and bandwidth_csv == "-":
        raise UsageError("stdin can contain only one matrix; name a file for the other")
    latency, bandwidth = (
        None if path is None else parse_matrix(_read(path), where=_named(path))
        for path in (latency_csv, bandwidth_csv)
    )
    if latency is not None and bandwidth is not None and latency.shape != bandwidth.shape:
        raise UsageError(
            f"{latency_csv} has {len(latency)} CPUs and {bandwidth_csv} has {len(bandwidth)}; "
            "give two matrices of the same machine"
        )
    found = infer(latency, bandwidth)
    if as_json:
        click.echo(found.model_dump_json())
        return
    from atoll.report.profile.inference import inference_text

    click.echo(inference_text(found, width=width()), nl=False)


def _read(path: str) -> str:
    try:
        with open(0 if path == "-" else path, "rb", closefd=path != "-") as file:
            content = file.read(_MOST_CSV_BYTES + 1)
    except (OSError, ValueError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else fault
        raise UsageError(f"{_named(path)}: cannot be read ({reason})") from None
    if len(content) > _MOST_CSV_BYTES:
        raise UsageError(f"{_named(path)}: over 256 MiB is too large for a matrix")
    return content.decode("utf-8", errors="replace")


def _named(path: str) -> str:
    return "stdin" if path == "-" else path


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
