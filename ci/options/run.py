#!/usr/bin/env python3
"""Compares every subcommand, with random options on random input, with a few lines of Python.

    ci/options/run.py [--runs N] [--seed S] [--only SUBCOMMAND] [--first N] [--refusals] [--program PATH]

A run is right if it gives the expected answer, or refuses its options with one clear message and status 2. Status 1
is for input that is bad or needs more than `--memory`. A panic, a signal, a hang, a wrong answer and a file left
behind are failures: the seed and the command are printed, and the status is 1. The same seed makes the same runs.

    inputs      random input, and the files that hold it
    damaged     CSV with faults
    oracles     the subcommands, and the lines of Python that compute the answer
    programs    subcommands of gristmill-lab, beside PROGRAM
"""

import argparse
import base64
import bz2
import collections
import csv
import gzip
import io
import json
import lzma
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile
import zlib

from inputs import job_options
from oracles import SUBCOMMANDS
from programs import PROGRAMS, Wrong

HANGS_AFTER_S = 300
# The number of times that a command refused its options or input, by message.
REFUSALS = collections.Counter()
ESCAPES = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"b": b"\b", b"v": b"\v", b"f": b"\f", b"\\": b"\\"}


def fields_of_tsv(line):
    if line.count(b"\n") or line.count(b"\r"):
        raise Wrong(f"a row is not one line: {line!r}")
    return [re.sub(rb"\\(.)", lambda match: ESCAPES[match[1]], field, flags=re.S) for field in line.split(b"\t")]


def rows_of(data, form):
    """Returns the rows of a result as lists of bytes, without the header."""
    if form == "tsv":
        return [fields_of_tsv(line) for line in data.split(b"\n")[:-1]]
    if form == "csv":
        rows = list(csv.reader(io.StringIO(data.decode("latin-1"), newline="")))
        return [[field.encode("latin-1") for field in row] for row in rows[1:]]

    def field(name, value):
        if name.endswith("_base64"):
            return base64.b64decode(value)
        return value.encode() if isinstance(value, str) else b"" if value is None else str(value).encode()

    return [[field(*item) for item in json.loads(line).items()] for line in data.splitlines()]


def is_same(found, expected):
    """Compares texts byte by byte, whole numbers exactly, and other numbers approximately.

    A pair is a number and its unit.
    """
    if isinstance(expected, tuple):
        number, unit = expected
        return abs(float(found) - number * unit) <= 1e-12 * max(1.0, abs(number)) * unit
    if isinstance(expected, bytes):
        return found == expected
    if isinstance(expected, int):
        return int(found) == expected if re.fullmatch(rb"-?\d+", found) else float(found) == expected
    return abs(float(found) - expected) <= 1e-12 * max(1.0, abs(expected))


def compare(rows, expected, ordered):
    if not ordered:
        rows = sorted(rows)
        expected = sorted(expected)
    if len(rows) != len(expected):
        raise Wrong(f"{len(rows)} rows, and should have {len(expected)}: {rows[:5]} {expected[:5]}")
    for row, wanted in zip(rows, expected):
        if len(row) != len(wanted) or not all(map(is_same, row, wanted)):
            raise Wrong(f"a row is {row}, and should be {list(wanted)}")


# One run.


class Output:
    """The destination of a command's answer, and the way to read it back."""

    def __init__(self, rng, folder, case):
        self.raw = isinstance(case.expected, bytes)
        self.form = "tsv" if self.raw else rng.choice(["tsv", "tsv", "csv", "jsonl"])
        self.unpack, self.target, self.parts, self.arguments = bytes, None, None, []
        if case.has_parts and rng.random() < 0.3:
            self.parts = folder / "parts"
            if rng.random() < 0.3:
                self.parts.mkdir()
            self.arguments = ["--parts", str(self.parts)]
        elif rng.random() < 0.4:
            packings = [(bytes, ""), (bytes, ""), (gzip.decompress, ".gz"), (bz2.decompress, ".bz2"), (lzma.decompress, ".xz")]
            self.unpack, end = rng.choice(packings)
            self.target = folder / f"result.{self.form}{end}"
            self.arguments = ["--output", str(self.target)]
            if rng.random() < 0.3:
                self.target.write_bytes(b"before")
        elif not self.raw:
            self.arguments = ["--format", self.form]
        self.stats = folder / "stats.json" if rng.random() < 0.2 else None
        if self.stats:
            self.arguments += ["--stats", str(self.stats)]
        self.timeline = folder / "timeline.html" if rng.random() < 0.2 else None
        if self.timeline:
            self.arguments += ["--timeline", str(self.timeline)]
        self.list = folder / "bad-records.jsonl"
        if self.target:
            self.list = folder / f"{self.target.name}.bad.jsonl"
        if case.aside and rng.random() < 0.3:
            self.list = folder / "aside"
            self.arguments += ["--bad-records", str(self.list)]

    def paths(self):
        return [path for path in (self.target, self.parts, self.stats, self.timeline) if path]

    def answer(self, stdout):
        """Returns the bytes of the answer."""
        if not self.parts:
            return self.unpack(self.target.read_bytes()) if self.target else stdout
        manifest = json.loads((self.parts / "manifest.json").read_bytes())
        files = [(self.parts / part["name"]).read_bytes() for part in manifest["parts"]]
        for part, content in zip(manifest["parts"], files):
            if (part["bytes"], int(part["crc32"], 16)) != (len(content), zlib.crc32(content)):
                raise Wrong(f"the manifest says {part}, and the part has {len(content)} bytes")
        names = sorted(path.name for path in self.parts.iterdir())
        if names != sorted(["manifest.json", *(part["name"] for part in manifest["parts"])]):
            raise Wrong(f"the folder holds {names}, and the manifest says {manifest}")
        return b"".join(files)


def start(arguments, case, folder, from_file):
    """Runs a command to its end."""
    if case.standard is not None and from_file:
        (folder / "standard").write_bytes(case.standard)
        opened = {"stdin": (folder / "standard").open("rb")}
    else:
        opened = {"input": case.standard} if case.standard is not None else {"stdin": subprocess.DEVNULL}
    try:
        return subprocess.run(arguments, capture_output=True, timeout=HANGS_AFTER_S, start_new_session=True, cwd=folder, **opened)
    except subprocess.TimeoutExpired:
        raise Wrong(f"{shlex.join(arguments)}\nit did not end within {HANGS_AFTER_S} s") from None


def options_of_job(rng, case):
    """Chooses options for the job of this case. An option that the case needs is not given twice."""
    return [option for option in job_options(rng) if option != "--deterministic" or option not in case.arguments]


def run(program, make, rng, folder):
    """Runs a command and checks it. Returns whether it gave the expected answer instead of refusing the options."""
    case = make(rng, folder)
    output = Output(rng, folder, case)
    options, more = options_of_job(rng, case), []
    checkpoint = folder / "checkpoint" if rng.random() < 0.15 else None
    if checkpoint:
        more = ["--checkpoint", str(checkpoint), "--checkpoint-every", rng.choice(["1ms", "20ms", "10s"])]
    arguments = [program, *case.arguments, *output.arguments, *options, *more]
    before = {path.name for path in folder.iterdir()} | {"standard"}
    from_file = rng.random() < 0.5
    answer = checked(arguments, case, folder, from_file, output, before, checkpoint)
    if answer is None:
        return case.is_bad
    # Run again with other options: the bytes must be the same. A result in parts needs a new folder.
    if case.ordered and not output.parts and rng.random() < 0.3:
        arguments = [program, *case.arguments, *output.arguments, *options_of_job(rng, case)]
        # A list of the default name is never replaced.
        output.list.unlink(missing_ok=True)
        before |= {path.name for path in folder.iterdir()}
        again = checked(arguments, case, folder, from_file, output, before, None)
        if again is not None and again != answer:
            raise Wrong(f"{shlex.join(arguments)}\nother bytes than with other options: {answer[:300]!r} {again[:300]!r}")
    return True


def checked(arguments, case, folder, from_file, output, before, checkpoint):
    """Runs a command and checks it. Returns the bytes of its answer, or None if it was refused."""
    done = start(arguments, case, folder, from_file)
    said = done.stderr.decode(errors="replace")
    try:
        return check(done, said, case, folder, output, before, checkpoint)
    except (Wrong, ValueError, KeyError, OSError, EOFError, lzma.LZMAError, zlib.error) as wrong:
        raise Wrong(f"{shlex.join(arguments)}\nstatus {done.returncode}: {said[:2000]}\n{wrong!r}") from None


def check(done, said, case, folder, output, before, checkpoint):
    names = {path.name for path in folder.iterdir()}
    if "panicked" in said or done.returncode not in (0, 1, 2):
        raise Wrong("it panicked, or was killed")
    if done.returncode != 0:
        if not said.startswith(("gristmill: ", "error: ", "plan: ")) or done.stdout:
            raise Wrong("it failed without a clean message, or with a result")
        # A small --memory may be too little for the input; the message must say so.
        if done.returncode == 1 and not case.is_bad and "raise --memory" not in said.lower():
            raise Wrong("it refused input that is good")
        if done.returncode == 1 and case.says and case.says not in said and "raise --memory" not in said.lower():
            raise Wrong(f"it does not say {case.says!r}")
        # A failed job keeps its checkpoint and its list of bad records.
        if left := names - before - ({checkpoint.name} if checkpoint else set()):
            raise Wrong(f"it failed and left {left}")
        message = next(line for line in said.splitlines()[::-1] if line.startswith(("gristmill: ", "error: ")))
        REFUSALS[re.sub(r"/\S+|\d+(\.\d+)?", "...", message)] += 1
        return None
    if case.is_bad:
        raise Wrong("it should have refused the input")
    wanted = {path.name for path in output.paths()} | ({output.list.name} if case.aside else set())
    if left := names - before - wanted - {output.list.name}:
        raise Wrong(f"it left something: {left}")
    if missing := wanted - names:
        raise Wrong(f"these are missing: {missing}")
    if case.aside:
        listed = [json.loads(line) for line in output.list.read_bytes().splitlines()]
        if len(listed) != case.aside or not all(entry["file"] and entry["cause"] for entry in listed):
            raise Wrong(f"{case.aside} things were set aside, and the list has {listed}")
    if output.stats:
        json.loads(output.stats.read_bytes())
    if output.timeline and not output.timeline.read_bytes().startswith(b"<!doctype html>"):
        raise Wrong("the timeline is no page")
    data, expected = output.answer(done.stdout), case.expected
    if output.raw:
        if data != expected:
            raise Wrong(f"{data[:200]!r}, and should be {expected[:200]!r}")
        return data
    rows = rows_of(data, output.form)
    if isinstance(expected, dict):
        rows = [row for row in rows if row[0] in expected]
        expected = [(row[0], expected[row[0]]) for row in rows]
        if not rows:
            raise Wrong("there is no such row")
    compare(rows, expected, case.ordered)
    return data


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="of each subcommand [default: 200]")
    parser.add_argument("--first", type=int, default=0, help="the number of the first run [default: 0]")
    parser.add_argument("--seed", type=int, help="[default: another one each time]")
    parser.add_argument("--only", help="this subcommand, e.g. word-count")
    parser.add_argument("--refusals", action="store_true", help="count messages of commands that refused")
    parser.add_argument("--program", default="target/release/gristmill", help="[default: target/release/gristmill]")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**9)
    print(f"seed {seed}, {options.runs} runs of each subcommand")
    program, failures = os.path.abspath(options.program), 0
    lab = os.path.join(os.path.dirname(program), "gristmill-lab")
    for make in [*SUBCOMMANDS, *PROGRAMS]:
        name = make.__name__.replace("_", "-")
        if options.only not in (None, name):
            continue
        answers, failures_before = 0, failures
        for number in range(options.first, options.first + options.runs):
            # Each run has its own seed, so that it can be repeated alone.
            rng = random.Random(f"{seed} {name} {number}")
            with tempfile.TemporaryDirectory(prefix="gristmill-options-") as folder:
                folder = pathlib.Path(folder)
                try:
                    answers += make(lab, rng, folder) if make in PROGRAMS else run(program, make, rng, folder)
                except Wrong as wrong:
                    failures += 1
                    print(f"\nseed {seed}, {name}, run {number}:\n{wrong}", flush=True)
        failed = failures - failures_before
        print(f"{name}: {answers} as expected, {options.runs - answers - failed} refused their options, {failed} failed", flush=True)
        if options.runs > 4 and answers * 3 < options.runs:
            failures += 1
            print(f"{name}: too few answers to say anything")
    if options.refusals:
        print(*(f"{count:6} {message}" for message, count in REFUSALS.most_common()), sep="\n")
    print(f"{failures} failures")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
