"""`atoll demo`: every step on this machine, ending in a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from rich.console import Console

from atoll.bench.analysis import summarise
from atoll.bench.demo import conclusion, demo_request, measure_in_time
from atoll.bench.job import Job, make_job
from atoll.bench.results import Results, read_results
from atoll.bench.runner import Tick
from atoll.cli.measuring import run_with_progress
from atoll.cli.options import machine_for
from atoll.cli.terminal import can_draw, has_colour, width
from atoll.engines import registry
from atoll.engines.facts import facts_of
from atoll.errors import EngineFailed, UsageError
from atoll.host.local import LocalHost
from atoll.plan import make_plan
from atoll.report.bench.progress import preparation
from atoll.report.bench.render import render
from atoll.report.bench.text import bench_text
from atoll.report.machine.text import machine_picture
from atoll.report.terminal.plan import plan_text
from atoll.schema.machine import Machine
from atoll.schema.results import VerifyResult
from atoll.schema.text import plural
from atoll.store.files import write_atomic
from atoll.store.paths import state_dir
from atoll.supervise.interrupts import terminate_is_interrupt

TIME_BOX_S = 280.0  # of 5 minutes; the rest is for the report
SCALE_FACTOR = 0.1
QUERIES = ("q1", "q6", "q18")


@click.command(epilog="Example: atoll demo -o demo, then open demo/duckdb.html")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the files (default: a new one in Atoll's state folder).",
)
def command(output: Path | None) -> None:
    """Run every step on this machine: topology, plan, bench, verify, report.

    Compares one instance with one per core for each installed demo engine, the fastest engine
    first, with queries of TPC-H at scale factor 0.1. Takes at most 5 minutes: it leaves out the
    queries and engines that do not fit.
    """
    host = LocalHost()
    until_s = time.monotonic() + TIME_BOX_S
    with terminate_is_interrupt():
        _step(1, "This machine")
        machine = machine_for()
        _show_machine(machine)
        folder = _folder(output)
        write_atomic(folder / "machine.json", machine.model_dump_json(indent=2) + "\n")
        _step(2, "Engines that can run here")
        engines = _usable(host)
        _step(3, f"What Atoll would choose for {engines[-1]}")
        plan = make_plan(machine, registry.get(engines[-1]).traits, "auto")
        print(plan_text(plan, explain=False, colour=has_colour()), end="")
        _step(4, "Measurements, one deployment at a time")
        measured = []
        for engine in engines:
            results = _measure(engine, machine, host, folder, until_s)
            if results is not None:
                measured.append(results)
    summaries = [summarise(results) for results in measured]
    _step(5, "Placement of the threads while each deployment was up")
    for results in measured:
        _show_verify(results)
    _step(6, "Results")
    for results, summary in zip(measured, summaries, strict=True):
        Console(highlight=False).print(bench_text(summary))
        report = folder / f"{results.header.entrants[0].engine}.html"
        write_atomic(report, render(results, "html"))
        print(f"Report: {report}\n")
    if not any(entrant.blocks_done for summary in summaries for entrant in summary.entrants):
        raise EngineFailed(f"no deployment finished a block; the errors are in {folder}")
    for sentence in conclusion(summaries):
        print(sentence)


def _measure(
    engine: str, machine: Machine, host: LocalHost, folder: Path, until_s: float
) -> Results | None:
    """Measure as many queries as fit into the time; prints what does not fit."""

    def job(queries: Sequence[str]) -> Job:
        request = demo_request(engine, SCALE_FACTOR, queries)
        with preparation() as progress:
            return make_job(request, host=host, machine=machine, progress=progress)

    def run(job: Job, path: Path, watch: Callable[[Tick], None]) -> None:
        run_with_progress(job, path, host, resume=False, watch=watch)

    path = folder / f"{engine}.jsonl"
    try:
        return measure_in_time(job, run, path, QUERIES, until_s=until_s, say=print)
    except EngineFailed as fault:
        if not path.exists():
            raise  # before anything was measured
        print(f"atoll: {fault}")  # the finished blocks are still worth a report
        return read_results(path)


def _step(number: int, title: str) -> None:
    print()
    Console(highlight=False).print(f"[bold]{number}/6 {title}[/bold]")


def _show_machine(machine: Machine) -> None:
    lines = machine_picture(machine, width=width(), height=40, ascii_only=not can_draw())
    for line in lines:
        print("".join(span.text for span in line).rstrip())
    for warning in machine.warnings:
        print(f"Warning: {warning.message}")


def _usable(host: LocalHost) -> tuple[str, ...]:
    """The installed demo engines, those that live in one process first, because they start fast.

    Prints what is missing. Raises EngineFailed if no engine is installed.
    """
    usable: list[str] = []
    missing: list[str] = []
    for name in registry.names():
        if not facts_of(registry.get(name)).demo:
            continue
        try:
            found = registry.get(name).locate(host)
        except EngineFailed as fault:
            missing.append(str(fault))
            print(f"{name}: left out: {fault}")
            continue
        java = f", Java {found.java_version}" if found.java_version else ""
        print(f"{name} {found.version}{java}")
        usable.append(name)
    if not usable:
        raise EngineFailed(f"no engine can run here: {'; '.join(missing)}")
    return tuple(sorted(usable, key=lambda name: registry.get(name).traits.jvm))


def _folder(output: Path | None) -> Path:
    if output is None:
        return state_dir("demo", time.strftime("%Y-%m-%d-%H%M%S"))
    if (output / "machine.json").exists():
        raise UsageError(f"{output}: contains an earlier demo; choose another folder with -o")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise UsageError(f"{output}: cannot be created ({fault.strerror})") from None
    return output


def _show_verify(results: Results) -> None:
    for entrant in results.header.entrants:
        checks = [
            line
            for line in results.lines
            if isinstance(line, VerifyResult) and line.label == entrant.label
        ]
        threads = sum(line.threads for line in checks)
        drifted = sum(line.drifted for line in checks)
        where = f"{drifted} NOT in their place" if drifted else "all where the plan put them"
        seen = f"{plural(threads, 'thread')} in {plural(len(checks), 'check')}, {where}"
        print(f"{entrant.label}: {seen if checks else 'never up'}")
