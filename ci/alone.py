#!/usr/bin/env python3
"""Passes on what `cargo test --no-fail-fast` prints, and says at the end how each test that failed is run alone.

cargo test --no-fail-fast OPTIONS 2>&1 | ci/alone.py OPTIONS
python3 -B -m doctest ci/alone.py  tests this script, without a word if it passes
"""

import re
import sys

FAILED = re.compile(r"(?:test )?(\S+)(?: - .*)? \.\.\. FAILED$")
#: Cargo's list of the targets that failed, in the order in which they ran.
TARGET = re.compile(r"    `(-p \S+ (?:--doc|--lib|--(?:test|bin|example|bench) \S+))`$")


def alone(lines, options=""):
    """Yields the command for each test that failed.

    >>> lines = '''     Running unittests src/lib.rs (target/debug/deps/gristmill_os-1)
    ... test region::tests::a_page_is_there ... ok
    ...      Running tests/shell_lines.rs (target/debug/deps/shell_lines-2)
    ... test nothing_runs ... FAILED
    ... test that_runs ... ok
    ...      Running tests/death.rs (target/debug/deps/death-3)
    ... a_worker_dies ... FAILED
    ... error: 2 targets failed:
    ...     `-p gristmill-batch --test shell_lines`
    ...     `-p gristmill --test death`'''.splitlines()
    >>> for command in alone(lines, "--features a/b"):
    ...     print(command)
    cargo test --features a/b -p gristmill-batch --test shell_lines nothing_runs
    cargo test --features a/b -p gristmill --test death a_worker_dies
    """
    failed, targets = [], []
    for line in lines:
        if line.startswith(("     Running ", "   Doc-tests ")):
            failed.append([])
        elif failed and (found := FAILED.match(line)):
            failed[-1].append(found[1])
        elif found := TARGET.match(line):
            targets.append(found[1])
    for target, names in zip(targets, filter(None, failed)):
        for name in names:
            yield " ".join(["cargo test", *([options] if options else []), target, name])


def main():
    seen = []
    for line in sys.stdin:
        print(line, end="", flush=True)
        seen.append(line.rstrip("\n"))
    if commands := list(alone(seen, " ".join(sys.argv[1:]))):
        print("Alone:", *commands, sep="\n    ", file=sys.stderr)


if __name__ == "__main__":
    main()
