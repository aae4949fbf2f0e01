"""`python -m gristmill [--SETTING VALUE]... FILE [ARGUMENT]...`, or `gristmill run`: runs a program.

An error of a job is shown without the lines of this package.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from typing import Any

from .base.errors import GristmillError, JobError
from .base.settings import configure
from .version import version

_USAGE = "usage: gristmill run [--SETTING VALUE]... FILE [ARGUMENT]...; settings are those of gm.configure, such as --workers 4"


def main(arguments: Sequence[str]) -> int:
    """Runs a program; returns its exit status.

    >>> main(["--workers", "two", "job.py"])
    2
    """
    if arguments[:1] in (["--help"], ["-h"], ["--version"]):
        print(f"gristmill {version()}" if arguments[0] == "--version" else _USAGE)
        return 0
    try:
        settings, (file, *rest) = _parsed(list(arguments))
        configure(**settings)
    except (TypeError, ValueError) as error:
        print(f"gristmill run: {error}\n{_USAGE}", file=sys.stderr)
        return 2
    if not os.path.isfile(file):
        print(f"gristmill run: there is no file {file}", file=sys.stderr)
        return 2
    sys.argv = [file, *rest]
    sys.path[0] = os.path.dirname(os.path.abspath(file))
    try:
        runpy.run_path(file, run_name="__main__")
    except GristmillError as error:
        if isinstance(error, JobError) and error.traceback_text:
            print(error.traceback_text.rstrip(), end="\n\n", file=sys.stderr)
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parsed(arguments: list[str]) -> tuple[dict[str, Any], list[str]]:
    """Settings, and the rest of the arguments.

    >>> _parsed(["--workers", "4", "--on-error=skip", "job.py", "--workers", "7"])
    ({'workers': '4', 'on_error': 'skip'}, ['job.py', '--workers', '7'])
    """
    settings: dict[str, Any] = {}
    while arguments and arguments[0].startswith("--"):
        name, _, value = arguments.pop(0)[2:].partition("=")
        if not value:
            if not arguments:
                raise ValueError(f"--{name} needs a value")
            value = arguments.pop(0)
        settings[name.replace("-", "_")] = value
    if not arguments:
        raise ValueError("which program?")
    return settings, arguments


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
