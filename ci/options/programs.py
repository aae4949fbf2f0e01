"""Subcommands of gristmill-lab: generate, terasort, experiment. `program` is that command."""

import collections
import itertools
import json
import re
import shlex
import struct
import subprocess
import zlib

from inputs import job_options

HANGS_AFTER_S = 300


class Wrong(Exception):
    """The error of a run that misbehaved."""


def call(program, folder, *arguments, status=0, **more):
    """Runs a command that must end with this status, and returns its output."""
    line = [program, *map(str, arguments)]
    more = more or {"stdin": subprocess.DEVNULL}
    try:
        done = subprocess.run(line, capture_output=True, timeout=HANGS_AFTER_S, start_new_session=True, cwd=folder, **more)
    except subprocess.TimeoutExpired:
        raise Wrong(f"{shlex.join(line)}\nit did not end within {HANGS_AFTER_S} s") from None
    if done.returncode != status or b"panicked" in done.stderr:
        said = done.stderr.decode(errors="replace")
        raise Wrong(f"{shlex.join(line)}\nstatus {done.returncode}, and should be {status}: {said[:2000]}")
    return done.stdout


def generate(program, rng, folder):
    """Checks that equal seeds give equal files, different seeds different ones, and that each file fits its kind."""
    kinds = ["kmeans", "pca", "matrix-multiply", "palindromes", "small-files", "word-count"]
    kind, seed = rng.choice(kinds), rng.randrange(2**64)

    def generated(below, seed, *more):
        names = call(program, folder, "generate", kind, "--seed", seed, "--output", below, *more).decode().splitlines()
        paths = [folder / name for name in names]
        return [file for path in paths for file in (sorted(path.rglob("*.txt")) if path.is_dir() else [path])]

    first = generated("a", seed)
    content = [path.read_bytes() for path in first]
    if content != [path.read_bytes() for path in generated("b", seed)]:
        raise Wrong(f"generate {kind} --seed {seed} made other bytes the second time")
    call(program, folder, "generate", kind, "--seed", seed, "--output", "a", status=2)
    if kind not in ("palindromes", "small-files") and content == [path.read_bytes() for path in generated("a", seed ^ 1, "--force")]:
        raise Wrong(f"generate {kind} made the same bytes for the seeds {seed} and {seed ^ 1}")
    if kind == "kmeans":
        rows = [list(map(int, line.split(b","))) for line in content[0].splitlines()]
        is_right = len(rows) == 10_000 and all(len(row) == 3 and 0 <= min(row) and max(row) < 1000 for row in rows)
    elif kind == "word-count":
        is_right = 8_000_000 <= len(content[0]) < 8_001_000 and re.fullmatch(rb"[a-z, \n]+", content[0])
    elif kind == "palindromes":
        is_right = content == [b"a" * 1000] * 1000
    elif kind == "small-files":
        is_right = len(content) == 1000 and all(1024 <= len(text) < 2048 for text in content)
    else:
        rows = 200 if kind == "pca" else 400
        heads = [text[: text.index(b"\n")] for text in content]
        numbers = [struct.unpack(f"<{rows * rows}d", text[-8 * rows * rows :]) for text in content]
        is_right = all(f"({rows}, {rows})".encode() in head for head in heads)
        is_right = is_right and all(number in range(100) for matrix in numbers for number in matrix)
    if not is_right:
        raise Wrong(f"generate {kind} --seed {seed} made what it does not promise")
    return True


def terasort(program, rng, folder):
    """Makes records, sorts them with random options, and validates them. A deliberate fault must be found."""
    count, seed = rng.choice([0, 1, 2, 1000, 30_000]), rng.randrange(2**64)
    made = call(program, folder, "terasort", "generate", count, "--seed", seed)
    call(program, folder, "terasort", "generate", count, "--seed", seed, "--output", "tera")
    if made != (folder / "tera").read_bytes() or len(made) != 100 * count:
        raise Wrong(f"terasort generate {count} --seed {seed} writes other bytes to a file than to a pipe")
    records = [made[at : at + 100] for at in range(0, len(made), 100)]
    if [int(record[12:44], 16) for record in records] != list(range(count)):
        raise Wrong(f"terasort generate {count} --seed {seed}: the numbers of records are not in order")
    options = job_options(rng)
    line = [program, "application", "sort", "--records", "terasort", *options, "--output", "sorted", "tera"]
    done = subprocess.run(line, capture_output=True, timeout=HANGS_AFTER_S, cwd=folder, stdin=subprocess.DEVNULL)
    if done.returncode not in (0, 2) or b"panicked" in done.stderr:
        raise Wrong(f"{shlex.join(line)}\nstatus {done.returncode}: {done.stderr[:2000]!r}")
    if done.returncode:
        return False
    records.sort()
    if (folder / "sorted").read_bytes() != b"".join(records):
        raise Wrong(f"{shlex.join(line)}\nthe records are not sorted")
    # The findings of validate: the number of records, the sum of their CRC-32, and equal keys.
    checksum = sum(map(zlib.crc32, records)) % 2**64
    duplicates = sum(a[:10] == b[:10] for a, b in itertools.pairwise(records))
    wanted = f"{count} records, checksum {checksum:016x}, {duplicates} duplicate keys\n".encode()
    for found in [call(program, folder, "terasort", "validate", "sorted"), call(program, folder, "terasort", "validate", input=b"".join(records))]:
        if found != wanted:
            raise Wrong(f"terasort validate says {found!r}, and should say {wanted!r}")
    fault = rng.choice(["cut", "swapped"])
    if fault == "cut":
        broken = b"".join(records) + b"x" * rng.randint(1, 99)
    elif count < 2:
        return True
    else:
        at = rng.randrange(count - 1)
        records[at], records[at + 1] = records[at + 1], records[at]
        if records[at][:10] == records[at + 1][:10]:
            return True
        broken = b"".join(records)
    call(program, folder, "terasort", "validate", status=1, input=broken)
    return True


def experiment(program, rng, folder):
    """Checks that each run has a row, and that none failed."""
    topic = rng.choice(["isolation", "topology", "exchange", "pages", "workers", "buffer", "combiner"])
    applications = rng.sample(["kmeans", "pca", "matrix-multiply", "tile-search"], rng.randint(1, 2))
    rounds = rng.randint(1, 2)
    options = ["--quick", "--only", topic, "--apps", ",".join(applications), "--rounds", rounds, "--repeats", rng.randint(0, 1)]
    options += ["--by", rng.choice(["wall", "processor"])]
    if rng.random() < 0.5:
        options += ["--data", "kept input"]
    call(program, folder, "experiment", *options)
    report = (folder / "experiment" / "report.html").read_text()
    lines = (folder / "experiment" / "runs.csv").read_text().splitlines()
    shown = json.dumps(list(map(str, options)))
    if "What failed" in report or report.count("<p class='result'>") != (2 if topic == "workers" else 1):
        raise Wrong(f"experiment {shown}: a run failed, or there is no conclusion")
    runs = collections.Counter()
    for line in lines[1:]:
        fields = line.split(",")
        if len(fields) != len(lines[0].split(",")) or fields[0] != topic:
            raise Wrong(f"experiment {shown}: a row is {line}")
        runs[tuple(fields[1:3])] += fields[-1] == "yes"
    if set(runs.values()) - {rounds}:
        raise Wrong(f"experiment {shown}: of {rounds} rounds each, these count: {runs}")
    return True


PROGRAMS = [generate, terasort, experiment]
