#!/usr/bin/env python3
"""Counts the instructions of small jobs, and compares them with counts.json: see ci/instructions.sh.

They are those of a job with one worker, which is a thread because valgrind starts no processes as the engine does; in
user mode, in the profile dev, as valgrind counts them.
Another compiler makes other instructions, and so do other units of code generation, which .ci/run sets; on another
processor libraries choose other code. So nothing is compared if these are not the recorded ones.
"""

import gzip
import json
import os
import platform
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

COUNTS = Path(__file__).with_name("counts.json")
#: How much more or less a job may take, in percent; less is to be committed, too, or a later rise would be hidden. What
#: differs from run to run, such as the seed of the hashes and the number of times that a process waits, is below 1 %.
MORE = 5
JOBS = {
    "words": "word-count words.txt",
    "words, letters": "word-count --tokens alpha --top 10 words.txt",
    "words, gzip": "word-count words.txt.gz",
    "words, small files": "word-count files",
    "sums, few keys": "group-by --by 1 --sum 3 --header no table.csv",
    "sums, many keys": "group-by --by 2 --sum 3 --header no table.csv",
    "sums, JSON": "group-by --by key --sum number table.jsonl",
    # For a result that reducers write, the survey for ranges may take as long as it does under valgrind.
    "sort, lines": "sort -o sorted words.txt",
    "sort, records": "sort -o sorted --records terasort records",
    "histogram": "histogram picture.bmp",
    "k-means": "kmeans --start first --iterations 3 -k 10 points.csv",
    "string match": "string-match --keys keys.txt words.txt",
}


def make_inputs(folder):
    """Writes the inputs, a megabyte or less each, the same each time."""
    numbers = random.Random(1)
    words = ["w" + format(int(20_000 ** numbers.random()), "x") for _ in range(100_000)]
    lines = "".join(" ".join(words[at : at + 8]) + "\n" for at in range(0, len(words), 8))
    (folder / "words.txt").write_text(lines)
    (folder / "words.txt.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
    (folder / "keys.txt").write_text("".join(line + "\n" for line in lines.splitlines()[:4]))
    (folder / "files").mkdir()
    for at in range(200):
        (folder / "files" / f"{at:03}.txt").write_text(lines[at * 1000 : at * 1000 + 1000])
    rows = [(numbers.randrange(100), numbers.randrange(20_000), numbers.randrange(1000)) for _ in range(40_000)]
    (folder / "table.csv").write_text("".join(f"k{few},{many},{number}\n" for few, many, number in rows))
    (folder / "table.jsonl").write_text("".join(json.dumps({"key": f"k{few}", "number": number}) + "\n" for few, _, number in rows[:10_000]))
    records = (bytes(numbers.choices(range(32, 127), k=10)) + b"." * 88 + b"\r\n" for _ in range(5_000))
    (folder / "records").write_bytes(b"".join(records))
    side = 256
    head = b"BM" + struct.pack("<IIIIIIHHIIIIII", 54 + 3 * side**2, 0, 54, 40, side, side, 1, 24, 0, 3 * side**2, 0, 0, 0, 0)
    (folder / "picture.bmp").write_bytes(head + numbers.randbytes(3 * side**2))
    points = (f"{numbers.randrange(1000)},{numbers.randrange(1000)}\n" for _ in range(5_000))
    (folder / "points.csv").write_text("".join(points))


def instructions(program, job, folder):
    """Runs a job; returns its instructions."""
    with tempfile.TemporaryDirectory() as profiles:
        counter = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={profiles}/%p"]
        command = [*counter, program, *job.split(), "--workers", "1", "--isolation", "thread"]
        done = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"{job}: {done.stderr.strip()}")
        lines = [line for profile in Path(profiles).iterdir() for line in profile.read_text().splitlines()]
    count = sum(int(line.split()[1]) for line in lines if line.startswith("totals:"))
    return count or sys.exit(f"{job}: valgrind counted nothing")


def main():
    program = str(Path(sys.argv[1]).resolve())
    compiler = subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    counter = subprocess.run(["valgrind", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    units = os.environ.get("CARGO_PROFILE_DEV_CODEGEN_UNITS", "as cargo has it")
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    processor = models[0].split(":")[1].strip() if models else "unknown"
    with_what = {"rustc": compiler, "valgrind": counter, "machine": platform.machine(), "processor": processor, "codegen-units": units}
    is_set = "--set" in sys.argv[2:]
    known = {} if is_set else json.loads(COUNTS.read_text())
    if not is_set and known["with"] != with_what:
        print(f"ci/instructions: the counts are of {known['with']}, and here is {with_what}: nothing is compared")
        return
    if not is_set and known["instructions"].keys() != JOBS.keys():
        sys.exit("ci/instructions: counts.json has other jobs: ci/instructions.sh --set")
    with tempfile.TemporaryDirectory() as folder:
        make_inputs(Path(folder))
        counts = {name: instructions(program, job, folder) for name, job in JOBS.items()}
    if is_set:
        COUNTS.write_text(json.dumps({"with": with_what, "instructions": counts}, indent=1) + "\n")
        return
    failed = False
    for name, count in counts.items():
        before = known["instructions"][name]
        more = 100 * (count / before - 1)
        failed |= abs(more) > MORE
        print(f"{name:20} {count:12,} {more:+6.1f} %{' !' if abs(more) > MORE else ''}")
    if failed:
        sys.exit(
            f"ci/instructions: a job differs by more than {MORE} %. If that is right, say why in the commit that has the"
            " new numbers: ci/instructions.sh --set"
        )


if __name__ == "__main__":
    main()
