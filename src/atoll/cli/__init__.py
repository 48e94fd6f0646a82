"""The command line. Each command has a file, which parses, calls and prints.

A command is imported only when it runs, so `atoll topo` does not load what `atoll bench` needs.
`main` turns every outcome into the documented exit code.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from typing import Any

import click

from atoll import __version__
from atoll.errors import (
    EXIT_INTERNAL,
    EXIT_INTERRUPTED,
    AtollError,
    DownloadFailed,
    UsageError,
)
from atoll.host.caller import set_default, variable
from atoll.schema.text import one_line

# Command -> its line in `atoll --help`, kept here so that listing the commands imports none.
COMMANDS = {
    "topo": "Show the machine: packages, nodes, chiplets, caches, cores.",
    "measure": "Measure latency, bandwidth, caches and memory; find the chiplets.",
    "profile": "Show or compare what 'atoll measure' measured.",
    "plan": "Plan the placement of an engine's worker instances.",
    "render": "Write a plan as files that start it without Atoll.",
    "up": "Start an engine as planned and watch it.",
    "ps": "List the deployments that are up or have failed.",
    "status": "Show one deployment: its state, how to connect, its processes.",
    "logs": "Show what a deployment's processes wrote.",
    "verify": "Check that threads and pages are where the plan put them.",
    "inspect": "Show where the threads and memory of any process are.",
    "top": "Watch where the threads and pages of all deployments are.",
    "serve": "Serve that view to a browser, and metrics to Prometheus.",
    "restart": "Stop a deployment and start it again, as it was.",
    "down": "Stop a deployment.",
    "fleet": "Run these commands on several machines, over ssh.",
    "advise": "Show what to set for a program on this machine, and why.",
    "tune": "Find the settings that make a command better, by running it.",
    "apply": "Follow advice, or set a system-wide switch, with a journal.",
    "undo": "Restore the system-wide switches that Atoll has set.",
    "knobs": "Show the system-wide switches, and those that Atoll has set.",
    "workload": "Run a small known program, to see what a setting changes.",
    "oltp": "Measure transactions on few chiplets and on many.",
    "operators": "Place long-lived operators on the fewest cores.",
    "engine": "List, install and remove engines.",
    "bench": "Compare policies block by block.",
    "simulate": "Show what a deployment does to the caches of another machine.",
    "experiment": "Repeat a figure of the papers and judge its claim.",
    "decompose": "Split the gain of WIN over WIM into steps.",
    "replay": "Run your SQL against running clusters and measure it.",
    "report": "Turn results into HTML, Markdown, CSV or JSON.",
    "demo": "Run every step on this machine, ending in a report.",
    "help": "Show the help of Atoll or of a command.",
}

# What other tools call these commands.
_ALSO_CALLED = {
    **dict.fromkeys(("start", "run", "launch"), "up"),
    **dict.fromkeys(("stop", "end", "kill"), "down"),
    **dict.fromkeys(("list", "ls"), "ps"),
    **dict.fromkeys(("log", "tail"), "logs"),
}

# These import numpy, which otherwise starts a thread for each CPU.
_WITH_NUMPY = {"inspect", "measure", "profile", "serve", "top", "tune", "verify"}


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        if cmd_name in _WITH_NUMPY:
            set_default("OPENBLAS_NUM_THREADS", "1")
        module = importlib.import_module(f"atoll.cli.{cmd_name}")
        command = module.command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name in COMMANDS or name.startswith("-"):
            return super().resolve_command(ctx, args)
        import difflib  # not above: only a mistake needs it

        close = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.7)
        meant = _ALSO_CALLED.get(name) or (close[0] if close else "")
        raise click.UsageError(
            f"no command {name!r}{f'; did you mean {meant!r}?' if meant else ''}", ctx
        )

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=_Lazy,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: atoll topo, then atoll plan spark, then atoll bench spark.",
)
@click.version_option(__version__, prog_name="atoll")
def cli() -> None:
    """Run query engines at the speed of the hardware: one worker instance per chiplet or node.

    Exit codes: 0 success, 1 a check failed or found drift, 2 wrong usage, 3 unreadable topology,
    4 not permitted, 5 the engine failed, 6 data or disk, 70 internal error (a bug in Atoll), 97
    the emulated guest failed, 130 interrupted.
    """


def main(argv: list[str] | None = None) -> None:
    """Entry point of the `atoll` script."""
    if sys.stdout is None:  # the caller closed it (`>&-`)
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for as long as the process lives
    sys.exit(run(argv))


def run(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code. A user's mistake never ends in a traceback."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        # Not cli.main(), which ends with exit code 1 if the reader of a pipe is gone.
        with cli.make_context("atoll", arguments) as top:
            result: Any = cli.invoke(top)
        sys.stdout.flush()  # now, while a fault can still be reported
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.exceptions.NoArgsIsHelpError as fault:
        print(fault.format_message(), file=sys.stderr)
        return 2
    except (click.exceptions.Abort, KeyboardInterrupt) as end:
        return _complain("; ".join(["interrupted", *map(str, end.args)]), EXIT_INTERRUPTED)
    except click.ClickException as fault:
        hint = ""
        context = getattr(fault, "ctx", None)
        if context is not None:
            hint = f" (see '{context.command_path} --help')"
        return _complain(fault.format_message() + hint, 2)
    except AtollError as fault:
        if fault.__cause__ is not None and variable("ATOLL_DEBUG"):
            raise  # by the engine of another package, whose author needs the traceback
        return _complain(str(fault), fault.exit_code)
    except BrokenPipeError:
        _discard_stdout()  # the reader (head, less) has ended, which is fine
        return 0
    except Exception as fault:
        if isinstance(fault, OSError) and fault.errno == errno.ENOSPC:
            _discard_stdout()
            return _complain(
                f"cannot write: {fault.strerror}; free some space", DownloadFailed.exit_code
            )
        if _folder_is_gone():
            return _complain(
                "the current folder was removed; cd to another one", UsageError.exit_code
            )
        if variable("ATOLL_DEBUG"):
            raise
        from atoll.engines.calls import blamed

        if known := blamed(fault):
            return _complain(str(known), known.exit_code)
        return _complain(
            f"internal error (a bug in Atoll): {type(fault).__name__}: {fault}; "
            "please report it with the output of the same command with ATOLL_DEBUG=1",
            EXIT_INTERNAL,
        )
    return result if isinstance(result, int) else 0


def _folder_is_gone() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _discard_stdout() -> None:
    """Drop what could not be written; otherwise the interpreter tries again and complains."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _complain(message: str, code: int) -> int:
    print(f"atoll: {one_line(message)}", file=sys.stderr)
    return code
