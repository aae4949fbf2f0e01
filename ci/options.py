#!/usr/bin/env python3
"""Runs every subcommand with random options on random input, and compares its answer with that of a few lines of Python.

    ci/options.py [--runs N] [--seed S] [--only SUBCOMMAND] [--program PATH]

A run is right if it gives the answer of the lines here, or refuses the options with one clean message and status 1 or 2.
A panic, a signal, a hang, another answer, a file or a process left behind: the seed and the command are printed, and the
status is 1. The same seed makes the same runs.
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
import struct
import subprocess
import sys
import tempfile

HANGS_AFTER_S = 120
SPACE = re.compile(rb"[ \t\n\x0c\r]+")
ESCAPES = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"b": b"\b", b"v": b"\v", b"f": b"\f", b"\\": b"\\"}


class Wrong(Exception):
    """What a run should not have done."""


# Input.

def some_text(rng):
    """Few words or many, and what is odd about text."""
    words = [bytes(rng.choices(b"abcXYZ'", k=rng.randint(1, 6))) for _ in range(rng.choice([1, 5, 200]))]
    words += rng.sample([b"\xff\xfe", b"a\\b", b"\x08", b"a\x0bb", b"\\N", b'say "x"', b"a,b", b"gr\xc3\xbcn", b"\0"], 4)
    text = b""
    for _ in range(rng.choice([0, 1, 30, 3000])):
        line = b" ".join(rng.choices(words, k=rng.randint(0, 8)))
        text += line + rng.choice([b"\n", b"\n", b"\n", b"\r\n", b"\r\r\n", b"\t\n"])
    return text[:-1] if rng.random() < 0.3 else text


def packed(rng, content):
    """The content as it is, or compressed, and the extension of its name."""
    pack, end = rng.choice([(bytes, "")] * 3 + [(gzip.compress, ".gz"), (bz2.compress, ".bz2"), (lzma.compress, ".xz")])
    return pack(content), end


def spread(rng, folder, contents, extension):
    """Writes the contents as files; returns arguments that name them all, and what is on standard input."""
    if len(contents) == 1 and rng.random() < 0.2:
        return rng.choice([[], ["-"]]), contents[0]
    below = folder / "in"
    below.mkdir()
    names = []
    for number, content in enumerate(contents):
        data, end = packed(rng, content)
        path = below / f"{number:03}{extension}{end}"
        path.write_bytes(data)
        names.append(str(path))
    way = rng.randrange(4)
    if way == 0:
        return [str(below)], None
    if way == 1:
        return [str(below / "*")], None
    if way == 2:
        (folder / "list").write_bytes("\n".join(names).encode())
        return ["--files-from", str(folder / "list")], None
    return names, None


def texts(rng):
    return [some_text(rng) for _ in range(rng.choice([1, 1, 2, 7]))]


# Options.

def job_options(rng):
    """How the job runs; not every combination makes sense."""
    options = []

    def maybe(share, *words):
        if rng.random() < share:
            options.extend(str(word) for word in words)

    if rng.random() < 0.3:
        maybe(1, "--map-workers", rng.randint(1, 3), "--reduce-workers", rng.randint(1, 3))
    else:
        maybe(0.8, "--workers", rng.randint(1, 4))
    maybe(0.4, "--isolation", rng.choice(["process", "thread"]))
    maybe(0.3, "--exchange", rng.choice(["pipelined", "barrier"]))
    maybe(0.3, "--buffer", rng.choice(["auto", "array", "hash", "dense"]))
    maybe(0.3, "--combine", rng.choice(["both", "map", "reduce", "off"]))
    maybe(0.1, "--combine-after", rng.randint(1, 100))
    maybe(0.3, "--pages", rng.choice(["fresh", "reuse", "prealloc"]))
    maybe(0.3, "--page-bytes", rng.choice(["4KiB", "8KiB", "64KiB", "1.5KiB"]))
    maybe(0.3, "--split-bytes", rng.choice([1, 100, 4096, "0.5MiB"]))
    maybe(0.3, "--chunk-bytes", rng.choice(["4KiB", "64KiB", 100]))
    maybe(0.2, "--memory", rng.choice(["8MiB", "48MiB", "1.5GiB"]))
    maybe(0.2, "--no-sample")
    maybe(0.2, "--deterministic")
    maybe(0.1, "--retries", rng.randint(0, 3))
    maybe(0.1, "--max-failures", rng.randint(0, 3))
    maybe(0.1, "--task-timeout", "60s")
    maybe(0.1, "--explain")
    maybe(0.2, "--quiet")
    return options


def rank(rng, counts):
    """Options of the order of rows, the rows (key, number) as they follow, and whether their order matters."""
    by_key = sorted(counts.items())
    by_count = sorted(by_key, key=lambda row: -row[1])
    way = rng.randrange(6)
    if way == 0:
        return ["--sort", "count"], by_count, True
    if way == 1:
        return ["--sort", "none"], by_key, False
    if way == 2:
        top = rng.randint(1, 20)
        return ["--top", str(top)], by_count[:top], True
    if way == 3:
        top = rng.randint(1, 20)
        return ["--top", str(top), "--sort", "key"], sorted(by_count[:top]), True
    return rng.choice([[], ["--sort", "key"]]), by_key, True


# Output.

def fields_of_tsv(line):
    if line.count(b"\n") or line.count(b"\r"):
        raise Wrong(f"a row is not one line: {line!r}")
    return [re.sub(rb"\\(.)", lambda match: ESCAPES[match[1]], field, flags=re.S) for field in line.split(b"\t")]


def rows_of(data, form):
    """The rows of a result as lists of bytes; the header left out."""
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
    """Texts and whole numbers to the byte, other numbers nearly."""
    if isinstance(expected, bytes):
        return found == expected
    if isinstance(expected, int):
        return float(found) == expected
    return abs(float(found) - expected) <= 1e-6 * max(1.0, abs(expected))


def compare(rows, expected, ordered):
    if not ordered:
        rows = sorted(rows)
        expected = sorted(expected)
    if len(rows) != len(expected):
        raise Wrong(f"{len(rows)} rows, and should have {len(expected)}: {rows[:5]} {expected[:5]}")
    for row, wanted in zip(rows, expected):
        if len(row) != len(wanted) or not all(map(is_same, row, wanted)):
            raise Wrong(f"a row is {row}, and should be {list(wanted)}")


# Subcommands: each returns arguments, standard input, and the rows of the answer (or its bytes) with whether their order matters.

def word_count(rng, folder):
    contents = texts(rng)
    tokens = rng.choice(["space", "alpha"])
    counts = collections.Counter()
    for text in contents:
        if tokens == "alpha":
            found = [word.lstrip(b"'") for word in re.split(rb"[^A-Z']+", text.upper())]
        else:
            found = SPACE.split(text)
        counts.update(word for word in found if word)
    inputs, standard = spread(rng, folder, contents, ".txt")
    options, rows, ordered = rank(rng, counts)
    return ["word-count", "--tokens", tokens, *options, *inputs], standard, rows, ordered


def group_by(rng, folder):
    keys = [some_text(rng)[:5].decode("latin-1").replace("\0", "") or "k" for _ in range(rng.choice([1, 3, 40]))]
    keys = sorted({key.strip() or "k" for key in keys}) + ["a,b", 'a"b', "a\nb", "0", "a\tb"]
    is_json, sums = rng.random() < 0.5, rng.random() < 0.5
    totals, contents = collections.Counter(), []
    for _ in range(rng.choice([1, 2, 5])):
        rows = [(rng.choice(keys), rng.randint(-9, 10**rng.randint(1, 12))) for _ in range(rng.choice([1, 10, 3000]))]
        for key, value in rows:
            totals[key.encode()] += value if sums else 1
        text = io.StringIO(newline="")
        if is_json:
            for key, value in rows:
                text.write(json.dumps({"v": value, "key": key, "more": [1, {"key": 2}]}) + rng.choice(["\n", "\r\n"]))
        else:
            writer = csv.writer(text, lineterminator=rng.choice(["\n", "\r\n"]))
            writer.writerow(["other", "key", "v"])
            writer.writerows(["x", key, value] for key, value in rows)
        contents.append(text.getvalue().encode())
    extension = ".jsonl" if is_json else ".csv"
    inputs, standard = spread(rng, folder, contents, extension)
    if standard is not None and is_json:
        inputs = ["--input-format", "jsonl", *inputs]
    options, rows, ordered = rank(rng, totals)
    what = ["--sum", "v"] if sums else []
    return ["group-by", "--by", "key", *what, *options, *inputs], standard, rows, ordered


def string_match(rng, folder):
    contents = texts(rng)
    lines = [line.removesuffix(b"\r") for text in contents for line in text.split(b"\n")]
    keys = [key for key in dict.fromkeys(rng.choices(lines, k=5) + [b"absent"]) if key]
    data, end = packed(rng, b"\n".join(keys) + b"\n")
    (folder / f"keys{end}").write_bytes(data)
    keys = list(dict.fromkeys(key.removesuffix(b"\r") for key in keys))
    keys = [key for key in keys if key]
    counts = collections.Counter(lines)
    inputs, standard = spread(rng, folder, contents, ".txt")
    rows = [(key, counts[key]) for key in keys]
    return ["string-match", "--keys", str(folder / f"keys{end}"), *inputs], standard, rows, True


def sort(rng, folder):
    if rng.random() < 0.3:
        contents = [rng.randbytes(100 * rng.choice([0, 1, 50])) for _ in range(rng.randint(1, 3))]
        records = sorted(text[at:at + 100] for text in contents for at in range(0, len(text), 100))
        inputs, standard = spread(rng, folder, contents, ".bin")
        return ["sort", "--records", "terasort", *inputs], standard, b"".join(records), True
    contents = texts(rng)
    lines = [line for text in contents for line in text.removesuffix(b"\n").split(b"\n") if text]
    options = []
    if rng.random() < 0.4:
        start = rng.randint(0, 3)
        end = start + rng.randint(1, 4)
        options = ["--key-bytes", f"{start}..{end}"]
        lines.sort(key=lambda line: (line[start:end], line))
    else:
        lines.sort()
    inputs, standard = spread(rng, folder, contents, ".txt")
    return ["sort", *options, *inputs], standard, b"".join(line + b"\n" for line in lines), True


def palindromes(rng, folder):
    def of_line(line):
        return sum(line[i:j] == line[i:j][::-1] for i in range(len(line)) for j in range(i + 1, len(line) + 1))

    contents = [bytes(rng.choices(b"aab\r\n", k=rng.choice([0, 5, 200]))) for _ in range(rng.randint(1, 3))]
    total = sum(of_line(line.removesuffix(b"\r")) for text in contents for line in text.split(b"\n"))
    inputs, standard = spread(rng, folder, contents, ".txt")
    algorithm = rng.choice(["tree", "brute"])
    arguments = ["palindromes", "--print", "total", "--algorithm", algorithm, *inputs]
    return arguments, standard, [(b"total", total)], True


def histogram(rng, folder):
    counts, contents = collections.Counter(), []
    for _ in range(rng.randint(1, 3)):
        width, height = 4 * rng.randint(1, 20), rng.randint(1, 20)
        pixels = rng.randbytes(3 * width * height)
        for at, value in enumerate(pixels):
            counts[at % 3, value] += 1
        head = struct.pack("<2sIIIIiiHHIIiiII", b"BM", 54 + len(pixels), 0, 54, 40, width, height, 1, 24, 0, len(pixels), 0, 0, 0, 0)
        contents.append(head + pixels)
    inputs, standard = spread(rng, folder, contents, ".bmp")
    channels = [b"blue", b"green", b"red"]
    rows = [(name, value, counts[number, value]) for number, name in enumerate(channels) for value in range(256)]
    return ["histogram", *inputs], standard, rows, True


def linear_regression(rng, folder):
    xs = [rng.randint(-1000, 1000) for _ in range(rng.choice([2, 100, 5000]))] + [5000]
    slope, intercept = rng.randint(-5, 5), rng.randint(-100, 100)
    lines = "".join(f"{x},{slope * x + intercept}\n" for x in xs)
    inputs, standard = spread(rng, folder, [("x,y\n" + lines).encode()], ".csv")
    wanted = {b"n": len(xs), b"slope": float(slope), b"intercept": float(intercept)}
    return ["linear-regression", "--x", "x", "--y", "y", *inputs], standard, wanted, True


def matrix(rng, rows, columns):
    return [[rng.randint(-9, 9) for _ in range(columns)] for _ in range(rows)]


def text_of(numbers):
    return "".join(",".join(map(str, row)) + "\n" for row in numbers).encode()


def matrix_multiply(rng, folder):
    rows, inner, columns = (rng.choice([1, 2, 5, 40]) for _ in range(3))
    left, right = matrix(rng, rows, inner), matrix(rng, inner, columns)
    product = [[sum(a * b for a, b in zip(row, column)) for column in zip(*right)] for row in left]
    data, end = packed(rng, text_of(left))
    (folder / f"left.csv{end}").write_bytes(data)
    inputs, standard = spread(rng, folder, [text_of(right)], ".csv")
    arguments = ["matrix-multiply", "--left", str(folder / f"left.csv{end}"), "--way", rng.choice(["shared-output", "pairs"])]
    if rng.random() < 0.5:
        return arguments + inputs, standard, product, True
    trace = sum(product[at][at] for at in range(min(rows, columns)))
    summary = [(b"trace", trace), (b"sum", sum(map(sum, product))), (b"corner", product[-1][-1])]
    return [*arguments, "--print", "summary", *inputs], standard, summary, True


def kmeans(rng, folder):
    d, k = rng.randint(1, 5), rng.randint(1, 5)
    points = [[round(rng.uniform(-100, 100), 6) for _ in range(d)] for _ in range(rng.choice([k, 50, 2000]))]
    points = points + [[float(n)] * d for n in range(k)]
    centres = [list(point) for point in points[:k]]
    steps = rng.randint(1, 5)
    for _ in range(steps):
        groups = [[] for _ in centres]
        for point in points:
            distances = [sum((a - b) ** 2 for a, b in zip(point, centre)) for centre in centres]
            groups[distances.index(min(distances))].append(point)
        sizes = [len(group) for group in groups]
        before = centres
        centres = [[sum(xs) / len(group) for xs in zip(*group)] if group else centre for group, centre in zip(groups, centres)]
        if before == centres:
            break
    text = text_of([["abcde"[at] for at in range(d)], *points])
    inputs, standard = spread(rng, folder, [text], ".csv")
    arguments = ["kmeans", "-k", str(k), "--start", "first", "--iterations", str(steps), *inputs]
    rows = [(number + 1, size, *centre) for number, (size, centre) in enumerate(zip(sizes, centres))]
    return arguments, standard, rows, True


def pca(rng, folder):
    d, n = rng.randint(1, 5), rng.choice([2, 30, 500])
    data = matrix(rng, n, d)
    means = [(number + 1, sum(column) / n) for number, column in enumerate(zip(*data))]
    inputs, standard = spread(rng, folder, [text_of(data)], ".csv")
    return ["pca", "--print", "means", *inputs], standard, means, True


def tile_search(rng, folder):
    rows, columns = rng.choice([(2, 2), (2, 3), (3, 2), (1, 4), (3, 3)])
    depth = rng.randint(0, 12)
    start = tuple(range(1, rows * columns)) + (0,)
    seen, frontier, counts = {start}, [start], []
    while frontier and len(counts) <= depth:
        counts.append(len(frontier))
        after = []
        for state in frontier:
            at = state.index(0)
            for move in (-1, 1, -columns, columns):
                to = at + move
                if not 0 <= to < len(state) or abs(move) == 1 and to // columns != at // columns:
                    continue
                tiles = list(state)
                tiles[at], tiles[to] = tiles[to], 0
                if (tiles := tuple(tiles)) not in seen:
                    seen.add(tiles)
                    after.append(tiles)
        frontier = after
    arguments = ["tile-search", "--rows", str(rows), "--columns", str(columns), "--depth", str(depth)]
    return arguments, None, list(enumerate(counts)), True


SUBCOMMANDS = [word_count, group_by, string_match, sort, palindromes, histogram, linear_regression, matrix_multiply, kmeans,
               pca, tile_search]


# One run.

def run(program, make, rng, folder):
    """Runs a command and checks it; returns it, and whether it gave an answer."""
    arguments, standard, expected, ordered = make(rng, folder)
    arguments = [program, *arguments, *job_options(rng)]
    raw = isinstance(expected, bytes)
    form = "tsv" if raw else rng.choice(["tsv", "tsv", "csv", "jsonl"])
    unpack, target = bytes, None
    if rng.random() < 0.4:
        unpack, end = rng.choice([(bytes, ""), (bytes, ""), (gzip.decompress, ".gz"), (bz2.decompress, ".bz2"), (lzma.decompress, ".xz")])
        target = folder / f"result.{form}{end}"
        arguments += ["--output", str(target)]
        if rng.random() < 0.3:
            target.write_bytes(b"before")
    elif not raw:
        arguments += ["--format", form]
    stats = folder / "stats.json" if rng.random() < 0.2 else None
    if stats:
        arguments += ["--stats", str(stats)]
    before = sorted(path.name for path in folder.iterdir())
    if standard is not None and rng.random() < 0.5:
        (folder / "standard").write_bytes(standard)
        before = sorted([*before, "standard"])
        opened = {"stdin": (folder / "standard").open("rb")}
    else:
        opened = {"input": standard} if standard is not None else {"stdin": subprocess.DEVNULL}
    try:
        done = subprocess.run(arguments, capture_output=True, timeout=HANGS_AFTER_S, start_new_session=True, cwd=folder, **opened)
    except subprocess.TimeoutExpired:
        raise Wrong(f"{shlex.join(arguments)}\nit did not end within {HANGS_AFTER_S} s") from None
    said = done.stderr.decode(errors="replace")
    try:
        check(done, said, target, unpack, stats, form, expected, ordered, before, folder)
    except (Wrong, ValueError, KeyError, OSError, EOFError, lzma.LZMAError) as wrong:
        raise Wrong(f"{shlex.join(arguments)}\nstatus {done.returncode}: {said[:2000]}\n{wrong!r}") from None
    return done.returncode == 0


def check(done, said, target, unpack, stats, form, expected, ordered, before, folder):
    names = sorted(path.name for path in folder.iterdir())
    if "panicked" in said or done.returncode not in (0, 1, 2):
        raise Wrong("it panicked, or was killed")
    if done.returncode != 0:
        if not said.startswith(("gristmill: ", "error: ", "plan: ")) or done.stdout or names != before:
            raise Wrong(f"it failed without a clean message, or left something: {names}")
        return
    if names != sorted({*before, *(path.name for path in (target, stats) if path)}):
        raise Wrong(f"it left something behind: {names}, before it were {before}")
    data = unpack(target.read_bytes()) if target else done.stdout
    if stats:
        json.loads(stats.read_bytes())
    if isinstance(expected, bytes):
        if data != expected:
            raise Wrong(f"{data[:200]!r}, and should be {expected[:200]!r}")
        return
    rows = rows_of(data, form)
    if isinstance(expected, dict):
        rows = [row for row in rows if row[0] in expected]
        expected = [(row[0], expected[row[0]]) for row in rows]
        if not rows:
            raise Wrong("there is no such row")
    compare(rows, expected, ordered)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="of each subcommand [default: 200]")
    parser.add_argument("--seed", type=int, help="[default: another one each time]")
    parser.add_argument("--only", help="this subcommand, e.g. word-count")
    parser.add_argument("--program", default="target/release/gristmill", help="[default: target/release/gristmill]")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**9)
    print(f"seed {seed}, {options.runs} runs of each subcommand")
    program, failures = os.path.abspath(options.program), 0
    for make in SUBCOMMANDS:
        name = make.__name__.replace("_", "-")
        if options.only not in (None, name):
            continue
        answers = 0
        for number in range(options.runs):
            # Each run has a seed of its own, so that one can be repeated alone.
            rng = random.Random(f"{seed} {name} {number}")
            with tempfile.TemporaryDirectory(prefix="gristmill-options-") as folder:
                try:
                    answers += run(program, make, rng, pathlib.Path(folder))
                except Wrong as wrong:
                    failures += 1
                    print(f"\nseed {seed}, {name}, run {number}:\n{wrong}", flush=True)
        print(f"{name}: {answers} answers, {options.runs - answers} refusals or failures", flush=True)
        if options.runs > 4 and answers * 3 < options.runs:
            failures += 1
            print(f"{name}: too few answers to say anything")
    print(f"{failures} failures")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
