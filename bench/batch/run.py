#!/usr/bin/env python3
"""Measures gristmill batch with more programs than processors against the system's own order, and against other queues.

    python3 bench/batch/run.py GRISTMILL PROGRAMS ROUNDS > rows.csv

PROGRAMS is a folder with `triad` and `compute` (bench/batch/pair.rs). The ways of a task alternate, in reverse order in every second round.
"system order" runs the same programs at the same time in the same cgroups, and lets the system share the processors out. (Started by a shell,
they would share one cgroup, and get less of a machine on which something else runs.) A way whose command is not installed is left out. A row has the seconds, and the load of the machine before.
"""

import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

TRIAD, COMPUTE = "./triad 150", "./compute 80"


def ways(gristmill, history, commands, slots):
    """Returns the ways to run these shell commands, by name."""
    lines = "".join(line + "\n" for line in commands)
    targets = " ".join(f"t{at}" for at in range(len(commands)))
    makefile = f"all: {targets}\n" + "".join(f"t{at}:\n\t@{line}\n" for at, line in enumerate(commands))
    jobs = pathlib.Path(history).with_suffix(".jobs")
    jobs.write_text(lines)
    jobs.with_suffix(".mk").write_text(makefile)
    batch = f"{gristmill} batch -q --history {history}"
    return {
        "gristmill": f"{batch} --by-bandwidth -j {slots} {jobs}",
        "system order": f"{batch} -j {slots} {jobs}",
        "xargs": f"xargs -a {jobs} -d '\\n' -P {slots} -n 1 sh -c",
        "make": f"make -s -j {slots} -f {jobs.with_suffix('.mk')}",
        "parallel": f"parallel --will-cite -j {slots} -a {jobs}",
    }


def tasks(gristmill, work, processors):
    """Returns the tasks: a name, and ways by name."""
    many = ways(gristmill, f"{work}/true", ["true"] * 1000, processors)
    del many["system order"]
    yield "1000 true", many
    for name, count in [("2+2", 2), ("3+3", 3)]:
        commands = [TRIAD] * count + [COMPUTE] * count
        some = ways(gristmill, f"{work}/{name}", commands, 2 * count)
        yield name, {way: some[way] for way in ("gristmill", "system order")}
    text = f"{work}/text"
    subprocess.run(f"seq 1 3000000 | sort -R --random-source=/bin/sh > {text}", shell=True, check=True)
    database = f"{work}/database"
    rows = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000000)"
    subprocess.run(["sqlite3", database, f"create table t as {rows} select i, i * 7919 % 1000003 as k from n"], check=True)
    source = f"{work}/source.c"
    body = "".join(f"int f{at}(int a) {{ int b = a; for (int i = 0; i < a; i++) b = b * {at} + i; return b; }}\n" for at in range(4000))
    pathlib.Path(source).write_text(body)
    real = [
        f"xz -1 -c {text} > /dev/null",
        f"zstd -q -9 -c {text} > /dev/null",
        f"LC_ALL=C sort {text} > /dev/null",
        f"gcc -O2 -c {source} -o {work}/source.o",
        f"sqlite3 {database} 'select count(*), sum(k) from t where k % 7 = 3' > /dev/null",
        f"zstd -q -1 -c {text} > /dev/null",
    ]
    some = ways(gristmill, f"{work}/real", real, processors)
    del some["system order"]
    yield "real programs", some
    more = ways(gristmill, f"{work}/real-more", real, len(real))
    yield "real programs at once", {way: more[way] for way in ("gristmill", "system order")}


def main():
    gristmill, programs, rounds = os.path.abspath(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    print("task,way,round,seconds,load")
    with tempfile.TemporaryDirectory() as work:
        for task, of in tasks(gristmill, work, len(os.sched_getaffinity(0))):
            # Round 0 warms the caches and the history, and is not written.
            for turn in range(rounds + 1):
                order = [way for way in of if shutil.which(shlex.split(of[way])[0])]
                for way in order if turn % 2 else reversed(order):
                    load, began = os.getloadavg()[0], time.monotonic()
                    subprocess.run(of[way], shell=True, check=True, cwd=programs, stdout=subprocess.DEVNULL)
                    if turn:
                        print(f"{task},{way},{turn},{time.monotonic() - began:.3f},{load:.2f}", flush=True)


main()
