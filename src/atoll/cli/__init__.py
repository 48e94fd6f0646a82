"""The command line. One file per command: it parses, calls, prints; it holds no logic.

Commands are imported only when they are called, so that `atoll topo` does not pay for
what `atoll bench` needs. `main` turns every outcome into the documented exit code.
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
from atoll.schema.text import one_line

# Command -> one line for `atoll --help`, kept here so that listing them imports nothing.
COMMANDS = {
    "topo": "Show the machine: packages, nodes, chiplets, caches, cores.",
    "measure": "Measure the machine: latency, bandwidth, caches, memory; find its chiplets.",
    "profile": "Show what was measured, in words and pictures; compare two machines.",
    "plan": "Say who sits where, and why, for an engine and a policy.",
    "render": "Write a plan as the engine's configuration, scripts or systemd units.",
    "up": "Start an engine as planned, and watch it.",
    "ps": "List the deployments that are up.",
    "verify": "Check that every thread and page of a deployment is where the plan says.",
    "inspect": "Say where the threads and the memory of any process really are.",
    "down": "End a deployment, all of it and nothing else.",
    "knobs": "Show, set and undo the system's switches, with a journal.",
    "engine": "List the engines, fetch what one needs, remove it again.",
    "bench": "Measure policies against each other, block by block.",
    "report": "Turn bench results into HTML, Markdown, CSV or JSON.",
    "demo": "The whole way on this machine, ending in a report.",
}


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"atoll.cli.{cmd_name}")
        command = module.command
        assert isinstance(command, click.Command)
        return command

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

    Exit codes: 0 fine, 1 a check failed or drift, 2 usage, 3 unreadable topology,
    4 not permitted, 5 the engine failed, 6 download failed, 70 a fault of ours, 130 interrupted.
    """


def main(argv: list[str] | None = None) -> None:
    """Entry point of the `atoll` script."""
    if sys.stdout is None:  # the caller closed it (`>&-`)
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for as long as the process lives
    sys.exit(run(argv))


def run(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code; never lets a traceback out for a user's mistake."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        # Not cli.main(), which answers a reader that went away with exit code 1.
        with cli.make_context("atoll", arguments) as top:
            result: Any = cli.invoke(top)
        sys.stdout.flush()  # here, while a fault can still be told
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.exceptions.NoArgsIsHelpError as fault:
        print(fault.format_message(), file=sys.stderr)
        return 2
    except (click.exceptions.Abort, KeyboardInterrupt):
        return _say("interrupted", EXIT_INTERRUPTED)
    except click.ClickException as fault:
        hint = ""
        context = getattr(fault, "ctx", None)
        if context is not None:
            hint = f" (see '{context.command_path} --help')"
        return _say(fault.format_message() + hint, 2)
    except AtollError as fault:
        if fault.__cause__ is not None and os.environ.get("ATOLL_DEBUG"):
            raise  # of another package's engine, whose author wants to see where
        return _say(str(fault), fault.exit_code)
    except BrokenPipeError:
        _discard_stdout()  # the reader (head, less) went away, and that is fine
        return 0
    except Exception as fault:
        if isinstance(fault, OSError) and fault.errno == errno.ENOSPC:
            _discard_stdout()
            return _say(f"cannot write: {fault.strerror}; make room", DownloadFailed.exit_code)
        if _is_nowhere():
            return _say("the folder that you are in is gone; cd to another", UsageError.exit_code)
        if os.environ.get("ATOLL_DEBUG"):
            raise
        from atoll.engines.calls import blamed  # not before it is needed: `atoll topo` has 300 ms

        if told := blamed(fault):
            return _say(str(told), told.exit_code)
        return _say(
            f"a fault of ours: {type(fault).__name__}: {fault}; "
            "please report it with the output of the same command under ATOLL_DEBUG=1",
            EXIT_INTERNAL,
        )
    return result if isinstance(result, int) else 0


def _is_nowhere() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _discard_stdout() -> None:
    """What could not be written is dropped; the interpreter would try again, and complain."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _say(message: str, code: int) -> int:
    print(f"atoll: {one_line(message)}", file=sys.stderr)
    return code
