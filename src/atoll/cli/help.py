"""`atoll help`: the help of Atoll or of a command."""

from __future__ import annotations

import click


@click.command(epilog="Example: atoll help engine install")
@click.argument("names", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def command(context: click.Context, names: tuple[str, ...]) -> None:
    """Show the help of Atoll, or of COMMAND, as 'atoll COMMAND --help' does."""
    at = context.find_root()
    words = list(names)
    while words:
        if not isinstance(at.command, click.Group):
            raise click.UsageError(f"{at.command_path!r} has no commands of its own")
        name, found, words = at.command.resolve_command(at, words)
        assert found is not None  # otherwise resolve_command raises
        at = click.Context(found, info_name=name, parent=at)
    click.echo(at.get_help())
