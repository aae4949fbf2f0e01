#!/usr/bin/env python3
"""Measures gristmill batch with more programs than processors against the system's own order, and against other queues.

    python3 bench/batch/run.py GRISTMILL PROGRAMS ROUNDS [TASK...] > rows.csv

PROGRAMS is a folder with `triad` and `compute` (bench/batch/pair.rs). TASKs are words in the names of tasks to
measure: all, if there are none. The ways of a task alternate, in reverse order in every second round. "system order"
runs the same programs at the same time in the same cgroups, and lets the system share the processors out. (Started by
a shell, they would share one cgroup, and get less of a machine on which something else runs.) A way whose command is
not installed is left out, and so is a program of the groups. PYTHON names an interpreter with NumPy. A row has the
seconds from the start to the end of the last program, the mean of the seconds to the end of each (only where the
queue tells it), and the load of the machine before.
"""

import contextlib
import json
import os
import pathlib
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

TRIAD, COMPUTE = "./triad 150", "./compute 80"
PYTHON = os.environ.get("PYTHON", "python3")
THROUGH_PUEUE = f"{shlex.quote(sys.executable)} {pathlib.Path(__file__).parent.resolve()}/through_pueue.py"
OTHERS = ["xargs", "make", "parallel", *(["pueue"] if shutil.which("pueue") else [])]


def ways(gristmill, history, commands, slots):
    """Returns the ways to run these shell commands, by name."""
    lines = "".join(line + "\n" for line in commands)
    targets = " ".join(f"t{at}" for at in range(len(commands)))
    makefile = f"all: {targets}\n" + "".join(f"t{at}:\n\t@{line.replace('$', '$$')}\n" for at, line in enumerate(commands))
    jobs = pathlib.Path(history).with_suffix(".jobs")
    jobs.write_text(lines)
    jobs.with_suffix(".mk").write_text(makefile)
    batch = f"{gristmill} batch -q --json --history {history}"
    return {
        "gristmill": f"{batch} --by-bandwidth -j {slots} {jobs}",
        "system order": f"{batch} -j {slots} {jobs}",
        "xargs": f"xargs -a {jobs} -d '\\n' -P {slots} -n 1 sh -c",
        "make": f"make -s -j {slots} -f {jobs.with_suffix('.mk')}",
        "parallel": f"parallel --will-cite -j {slots} -a {jobs}",
        "pueue": f"{THROUGH_PUEUE} {pathlib.Path(history).parent} {slots} {jobs}",
    }


def pool(work, gristmill):
    """Makes inputs, and returns real programs of one to five seconds: a name, what must be installed, and a command."""
    text, database, source, matrix, image = (f"{work}/{name}" for name in ["text", "database", "source.c", "matrix.py", "image.ppm"])
    subprocess.run(f"seq 1 2000000 | sort -R --random-source=/bin/sh > {text}", shell=True, check=True)
    body = "".join(f"int f{at}(int a) {{ int b = a; for (int i = 0; i < a; i++) b = b * {at} + i; return b; }}\n" for at in range(900))
    pathlib.Path(source).write_text(body)
    if shutil.which("sqlite3"):
        rows = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 4000000)"
        subprocess.run(["sqlite3", database, f"create table t as {rows} select i, i * 7919 % 1000003 as k from n"], check=True)
    pathlib.Path(matrix).write_text(
        "import os, sys\n"
        "os.environ['OPENBLAS_NUM_THREADS'] = '1'\n"
        "import numpy\n"
        "if sys.argv[1] == 'product':\n"
        "    a = numpy.ones((1600, 1600))\n"
        "    for _ in range(6): a = a @ a / 1600\n"
        "else:\n"
        "    a = numpy.ones(32_000_000)\n"
        "    for _ in range(50): a.sum()\n"
    )
    with open(image, "wb") as file:
        file.write(b"P6 3000 2000 255\n" + bytes(range(250)) * (3000 * 2000 * 3 // 250))
    all_of_them = [
        ("xz", "xz", f"xz -1 -c {text} > /dev/null"),
        ("zstd -12", "zstd", f"zstd -q -12 -c {text} > /dev/null"),
        ("zstd -1", "zstd", f"for i in $(seq 20); do cat {text}; done | zstd -q -1 -c > /dev/null"),
        ("bzip2", "bzip2", f"bzip2 -c {text} > /dev/null"),
        ("sort", "sort", f"LC_ALL=C sort {text} > /dev/null"),
        ("gcc", "gcc", f"gcc -O1 -c {source} -o /dev/null"),
        ("sqlite3", "sqlite3", f"sqlite3 {database} 'select count(*), sum(k), k % 99 from t where k % 7 > 1 group by 3' > /dev/null"),
        ("matrix product", PYTHON, f"{PYTHON} {matrix} product"),
        ("sums", PYTHON, f"{PYTHON} {matrix} sums"),
        ("ffmpeg", "ffmpeg", "ffmpeg -v error -f lavfi -i testsrc=size=1280x720:duration=4 -threads 1 -c:v libx264 -f null -"),
        ("convert", "convert", f"convert {image} -blur 0x3 /dev/null"),
        ("openssl", "openssl", f"for i in $(seq 40); do openssl sha512 {text}; done > /dev/null"),
        ("word count", gristmill, f"cat {text} {text} {text} {text} {text} {text} | {gristmill} word-count --workers 1 --quiet - > /dev/null"),
        ("grep", "grep", f"grep -E '(1.*2|3.*4).*5$|([0-9])\\2.*\\2' {text} | tail -n 1 > /dev/null"),
    ]
    return [(name, command) for name, needed, command in all_of_them if shutil.which(needed)]


def tasks(gristmill, work, processors):
    """Yields the tasks: a name, and what makes the ways by name."""
    # pueue begins a program about every 0.2 s.
    left_out = ["system order", "pueue"]
    yield "1000 true", lambda: {way: of for way, of in ways(gristmill, f"{work}/true", ["true"] * 1000, processors).items() if way not in left_out}
    for name, count in [("2+2", 2), ("3+3", 3)]:
        commands = [TRIAD] * count + [COMPUTE] * count

        def synthetic(name=name, commands=commands):
            some = ways(gristmill, f"{work}/{name}", commands, len(commands))
            few = ways(gristmill, f"{work}/{name}-few", commands, processors)
            return {
                "gristmill": some["gristmill"],
                "system order": some["system order"],
                **{f"{way} -j {processors}": few[way] for way in OTHERS},
            }

        yield name, synthetic
    programs = []
    for number in range(10):

        def group(number=number):
            if not programs:
                programs.extend(pool(work, gristmill))
            # The same groups whichever of them are measured.
            picks = random.Random(1000 + number)
            members = picks.sample(programs, picks.randint(4, 8))
            print(f"group {number}: {', '.join(name for name, _ in members)}", file=sys.stderr)
            commands = [command for _, command in members]
            some = ways(gristmill, f"{work}/group{number}", commands, len(commands))
            few = ways(gristmill, f"{work}/group{number}-few", commands, processors)
            others = {f"{way} -j {processors}": few[way] for way in OTHERS} if number < 2 else {}
            return {"gristmill": some["gristmill"], "system order": some["system order"], **others}

        yield f"group {number}", group


def turnaround(said):
    """Returns the mean of the seconds to the end of each program, from the lines of --json, or nothing."""
    ends = []
    for line in said.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            return ""
        if "began_ms" in row:
            ends.append((row["began_ms"] / 1000, row["seconds"]))
    start = min((began for began, _ in ends), default=0)
    return f"{sum(began - start + took for began, took in ends) / len(ends):.3f}" if ends else ""


def main():
    gristmill, programs, rounds, only = os.path.abspath(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:]
    print("task,way,round,seconds,mean_turnaround,load")
    with tempfile.TemporaryDirectory() as work, contextlib.ExitStack() as at_end:
        at_end.callback(subprocess.run, f"{THROUGH_PUEUE} {work}", shell=True)
        for task, make in tasks(gristmill, work, len(os.sched_getaffinity(0))):
            if only and not any(word in task for word in only):
                continue
            of = make()
            # Round 0 warms the caches and the history, and is not written.
            for turn in range(rounds + 1):
                order = [way for way in of if shutil.which(shlex.split(of[way])[0])]
                for way in order if turn % 2 else reversed(order):
                    load, began = os.getloadavg()[0], time.monotonic()
                    run = subprocess.run(of[way], shell=True, cwd=programs, capture_output=True, text=True)
                    if run.returncode:
                        sys.exit(f"{of[way]}: {run.returncode}\n{run.stderr}")
                    if turn:
                        seconds = time.monotonic() - began
                        print(f"{task},{way},{turn},{seconds:.3f},{turnaround(run.stdout)},{load:.2f}", flush=True)


main()
