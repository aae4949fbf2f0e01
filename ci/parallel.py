#!/usr/bin/env python3
"""Does a command get the words that GNU parallel gives it? Random placeholders and values, with and without a shell.

    ci/parallel.py [COUNT] [SEED]       needs `parallel`, and target/debug/gristmill (or $GRISTMILL)

Commands that gristmill refuses are counted, not compared: docs/batch.md says which these are.
"""

import os
import random
import subprocess
import sys
from pathlib import Path

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).resolve().parent.parent / "target"))
GRISTMILL = os.environ.get("GRISTMILL", str(TARGET / "debug/gristmill"))
TEXTS = ["plain", "a b", "{print}"]
PLACEHOLDERS = "{} {.} {/} {//} {/.} {#} {1} {2} {1.} {2/} {1//} {2/.} {-1} {-2/} x{}y {.}.bak a{1}{2}b".split()
LETTERS = "ab./ $'\"\\*~é-=#2"


def case(chance):
    """Returns options, the words of a command, and its lists of values."""
    command = [chance.choice(PLACEHOLDERS + TEXTS) for _ in range(chance.randint(0, 4))]
    lists = []
    for at in range(chance.randint(1, 3)):
        values = ["".join(chance.choices(LETTERS, k=chance.randint(0, 6))) for _ in range(chance.randint(1, 3))]
        lists += [chance.choice([":::", ":::+"]) if at else ":::", *values]
    each = chance.choice([None, None, 1, 2, 3])
    return ["-n", str(each)] if each else [], command, lists


def output(words):
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True)


def main():
    count, seed = (int(text) for text in (sys.argv[1:] + ["200", "1"][len(sys.argv) - 1 :])[:2])
    chance = random.Random(seed)
    refused = 0
    for _ in range(count):
        options, command, lists = case(chance)
        # The command of GNU parallel is a line for a shell, in which placeholders need no quotes.
        line = ["printf", "'[%s]'"] + [word if word in PLACEHOLDERS else f"'{word}'" for word in command]
        batch = [GRISTMILL, "batch", "--no-history", "-q", "-j1", *options]
        expected = output(["parallel", "-k", "-j1", *options, *line, *lists])
        answers = [
            output([*batch, "--", "printf", "[%s]", *command, *lists]),
            output([*batch, "--shell", "sh", "--", *line, *lists]),
        ]
        for answer in answers:
            if answer.returncode == 2:
                refused += 1
            elif answer.stdout != expected.stdout:
                sys.exit(f"{options} {command} {lists}:\n  {expected.stdout}\n  {answer.stdout} {answer.stderr}")
    print(f"{2 * count - refused} commands got the words of GNU parallel, {refused} were refused (seed {seed})")


main()
