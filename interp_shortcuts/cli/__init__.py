"""The command line: `main`, its exit codes and how it says what went wrong.

What it accepts is `options`, what it does is `commands`. Exit codes: 0 success, 1 a run or a
computation failed, 2 misuse, 130 interrupted.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence


def main(args: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        args: The arguments after the program's name; none: those of the process.

    Returns:
        The exit code.
    """
    from interp_shortcuts import __version__
    from interp_shortcuts.errors import ConfigError, InterpShortcutsError

    args = sys.argv[1:] if args is None else list(args)
    if args == ["--version"]:
        print(f"interp-shortcuts {__version__}")
        return 0

    from interp_shortcuts.cli.options import parse

    try:
        command = parse(args)
    except SystemExit as stop:  # after --help, or after a message about a mistake
        return stop.code if isinstance(stop.code, int) else 2

    from interp_shortcuts.cli.commands import run_command

    try:
        return run_command(command)
    except KeyboardInterrupt as stop:
        print(f"\ninterrupted{f'; {stop}' if str(stop) else ''}", file=sys.stderr)
        return 130
    except InterpShortcutsError as error:
        if command.debug:
            traceback.print_exc()
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
