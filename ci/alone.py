#!/usr/bin/env python3
"""Passes on what `cargo test --no-fail-fast` prints, and says at the end how each test that failed is run alone.

cargo test --no-fail-fast OPTIONS 2>&1 | ci/alone.py OPTIONS
python3 -B -m doctest ci/alone.py  tests this script, without a word if it passes
"""

import re
import sys

FAILED = re.compile(r"(?:test )?(\S+)(?: - .*)? \.\.\. FAILED$")
#: Cargo says so behind each binary with a failure.
TARGET = re.compile(r"error: (?:test|doctest) failed, to rerun pass `(.*)`$")


def alone(lines, options=""):
    """Yields the command for each test that failed, and for each binary that died without saying which.

    >>> lines = '''     Running unittests src/lib.rs (target/debug/deps/gristmill_os-1)
    ... test region::tests::a_page_is_there ... ok
    ...      Running tests/shell_lines.rs (target/debug/deps/shell_lines-2)
    ... test nothing_runs ... FAILED
    ... test that_runs ... ok
    ... error: test failed, to rerun pass `-p gristmill-batch --test shell_lines`
    ...      Running tests/death.rs (target/debug/deps/death-3)
    ... error: test failed, to rerun pass `-p gristmill --test death`
    ...    Doc-tests gristmill
    ... test crates/engine/src/lib.rs - (line 8) ... FAILED
    ... error: doctest failed, to rerun pass `-p gristmill --doc`'''.splitlines()
    >>> for command in alone(lines, "--features a/b"):
    ...     print(command)
    cargo test --features a/b -p gristmill-batch --test shell_lines nothing_runs
    cargo test --features a/b -p gristmill --test death
    cargo test --features a/b -p gristmill --doc crates/engine/src/lib.rs
    """
    failed = []
    for line in lines:
        if line.startswith(("     Running ", "   Doc-tests ")):
            failed = []
        elif found := FAILED.match(line):
            failed.append(found[1])
        elif found := TARGET.match(line):
            for name in failed or [""]:
                yield " ".join(filter(None, ["cargo test", options, found[1], name]))


def main():
    seen = []
    for line in sys.stdin:
        print(line, end="", flush=True)
        seen.append(line.rstrip("\n"))
    if commands := list(alone(seen, " ".join(sys.argv[1:]))):
        print("Alone:", *commands, sep="\n    ", file=sys.stderr)


if __name__ == "__main__":
    main()
