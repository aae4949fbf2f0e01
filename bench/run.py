#!/usr/bin/env python3
"""Measures programs side by side.

    bench/run.py word-count-alpha-100m                 one set (bench/sets/NAME.toml), or several, or 'all'
    bench/run.py --peers FILE.toml SET                 with programs that are not ours (format below)
    bench/run.py --peer 'theirs=their-wc {input}' SET  the same for one program, on the command line
    bench/run.py --only 'gristmill|wc_' --rounds 3 --dry SET     a quick look that writes nothing

The commands of a set run in alternation (A B C A B C ...), so that a machine that gets slower does so for all of them.
One round warms up and is thrown away. Every run's answer is compared with the first command's; a program that answers
otherwise is marked, and the exit status is 1. Then one more run of each, not timed, samples the memory of the whole
process tree. Results go to bench/runs/DATE-KIND/SET.json (raw rows) and SET.md (a table).

A set, and a peers file, is TOML:

    what = "a sentence"           input = "text-100m.txt"       rounds = 7        (sets only)
    [[command]]
    name = "phoenix++"            run = "path/to/word_count {input} 10"
    env = { NPROC = "2" }         answer = '^\\s*(\\S+) - (\\d+)$'     version = "path/to/word_count --version"
    sets = ["word-count-alpha-*"]  (peers only)              rounds = 1 (fewer than the others, for slow ones)

In `run`, {input}, {data}, {root}, {bench} stand for the input file, bench/data, the repository and bench/. A command
with a `|` or a `>` runs in a shell. `answer` is what counts of the output: a regular expression per line, its groups
joined by a tab (default: lines of 'word TAB number'); an empty one says that this program's output cannot be
compared. `seconds` is a regular expression for a line in which a program says how long it took itself, without
loading its input: then that is its time.
"""

import argparse
import datetime
import fnmatch
import json
import os
import platform
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import tomllib

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
ANSWER = r"^(.+)\t(\S+)$"
MB = 1e6


class Command:
    def __init__(self, table, places):
        self.name = table["name"]
        self.text = table["run"]
        self.env = table.get("env", {})
        answer = table.get("answer", ANSWER)
        self.answer = re.compile(answer) if answer else None
        self.seconds = re.compile(table["seconds"], re.MULTILINE) if "seconds" in table else None
        self.version = table.get("version")
        self.rounds = table.get("rounds")
        line = self.text.format(**places)
        self.shell = "|" in line or ">" in line
        self.argv = ["/bin/sh", "-c", line] if self.shell else shlex.split(line)

    def missing(self):
        """The program that is not there, if so."""
        program = shlex.split(self.argv[2])[0] if self.shell else self.argv[0]
        if not shutil.which(program, path=None if "/" not in program else ""):
            return program
        script = next((word for word in self.argv[1:2] if word.endswith(".py")), None)
        return script if script and not os.path.exists(script) else None

    def start(self, stdout, stderr):
        return subprocess.Popen(
            self.argv, cwd=ROOT, env=os.environ | self.env, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True
        )

    def run(self, timeout_s):
        """Returns the numbers of one timed run, and the normalised answer.

        A program that hangs is ended with all its processes.
        """
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            began = time.perf_counter()
            child = self.start(out, err)
            alarm = threading.Timer(timeout_s, os.killpg, (child.pid, signal.SIGKILL))
            alarm.start()
            _, status, usage = os.wait4(child.pid, 0)
            wall = time.perf_counter() - began
            alarm.cancel()
            child.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0), err.seek(0)
            text, said = out.read().decode("utf-8", "replace"), err.read().decode("utf-8", "replace")
        if child.returncode == -signal.SIGKILL and wall >= timeout_s:
            raise RuntimeError(f"{self.name} did not end within {timeout_s:.0f} s")
        if child.returncode != 0:
            raise RuntimeError(f"{self.name} ended with {child.returncode}: {said.strip()[-300:]}")
        answer = None
        if self.answer:
            lines = (self.answer.match(line) for line in text.splitlines())
            answer = "\n".join("\t".join(found.groups()) for found in lines if found)
        if self.seconds:
            wall = float(self.seconds.search(text).group(1))
        row = {
            "wall_s": wall,
            "user_s": usage.ru_utime,
            "sys_s": usage.ru_stime,
            "faults_minor": usage.ru_minflt,
            "faults_major": usage.ru_majflt,
            "switches_waiting": usage.ru_nvcsw,
            "switches_forced": usage.ru_nivcsw,
        }
        return row, answer

    def memory(self, timeout_s):
        """Returns two peaks in MB, sampled.

        One is of the proportional set sizes of the process tree together (shared pages count once), the other of the
        largest resident set of one process. The latter comes from here too because what wait4 says of a child starts
        with the memory of this interpreter.
        """
        child, pss, rss, end = self.start(subprocess.DEVNULL, subprocess.DEVNULL), 0, 0, time.monotonic() + timeout_s
        while child.poll() is None:
            if time.monotonic() > end:
                os.killpg(child.pid, signal.SIGKILL)
            pids = tree(child.pid)
            pss = max(pss, sum(bytes_of(pid, "smaps_rollup", "Pss:") for pid in pids))
            rss = max([rss] + [bytes_of(pid, "status", "VmHWM:") for pid in pids])
            time.sleep(0.001)
        return {"pss_tree_mb": pss / MB, "rss_max_mb": rss / MB}

    def public(self):
        """The command as others may read it: without this machine's paths."""
        text = self.text.replace("{{", "{").replace("}}", "}").replace("{root}/", "").replace("{bench}/", "bench/").replace("{data}/", "bench/data/")
        return re.sub(r"(?<![^\s=])/(?:[^\s/]+/)+", "", text.replace(f"{ROOT}/", ""))

    def says_version(self, places):
        if not self.version:
            return None
        done = subprocess.run(self.version.format(**places), shell=True, cwd=ROOT, capture_output=True, text=True)
        return (done.stdout or done.stderr).strip().split("\n")[0] or None


def tree(pid):
    """A process and its descendants."""
    found = [pid]
    for parent in found:
        try:
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children") as children:
                    found.extend(map(int, children.read().split()))
        except OSError:
            pass
    return found


def bytes_of(pid, file, name):
    """A number in kB out of /proc; 0 where the process has gone."""
    try:
        with open(f"/proc/{pid}/{file}") as lines:
            return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), 0)
    except OSError:
        return 0


def machine():
    """Facts of the machine that explain a number."""
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    memory = next(int(line.split()[1]) * 1024 for line in open("/proc/meminfo") if line.startswith("MemTotal"))
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout.strip() if shutil.which("rustc") else None
    caches = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        kind = (index / "type").read_text().strip()
        if kind != "Instruction":
            caches["L" + (index / "level").read_text().strip()] = (index / "size").read_text().strip()
    pages = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "cores_usable": len(os.sched_getaffinity(0)),
        "caches": caches,
        "memory_gb": round(memory / 1e9, 1),
        "kernel": platform.release(),
        "rustc": rustc,
        "huge_pages": pages.read_text().strip() if pages.exists() else None,
        "python": platform.python_version(),
        "commit": subprocess.run(["git", "describe", "--always", "--dirty", "--exclude=*"], cwd=ROOT, capture_output=True, text=True).stdout.strip(),
    }


def kind_of(facts):
    """A folder name's worth of machine."""
    words = re.findall(r"xeon|epyc|ryzen|core|graviton|neoverse|apple", facts["cpu"].lower()) or [platform.machine()]
    return f"{words[0]}-{facts['cores']}core"


@contextmanager
def alone(lock):
    """Keeps other timings away while one round runs."""
    if not lock:
        yield
        return
    import fcntl

    with open(lock, "a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def measure(name, args, facts):
    """Runs one set; returns whether all answers agreed."""
    table = tomllib.loads((BENCH / "sets" / f"{name}.toml").read_text())
    places = {"root": ROOT, "bench": BENCH, "data": BENCH / "data", "input": BENCH / "data" / table.get("input", "")}
    tables = list(table["command"])
    for file in args.peers:
        tables += [
            t for t in tomllib.loads(Path(file).read_text())["command"] if any(fnmatch.fnmatch(name, pattern) for pattern in t.get("sets", ["*"]))
        ]
    tables += [dict(zip(("name", "run"), peer.split("=", 1))) for peer in args.peer]
    if args.only:
        tables = [t for t in tables if re.search(args.only, t["name"])]
    commands = []
    for command in (Command(t, places) for t in tables):
        if program := command.missing():
            print(f"{name}: {command.name} left out: there is no {program}", file=sys.stderr)
        else:
            commands.append(command)
    if "input" in table and not places["input"].exists():
        sys.exit(f"run.py: {places['input']} is missing; make it with bench/data.py {table['input'].split('.')[0]}")
    if not commands:
        print(f"{name}: nothing to run", file=sys.stderr)
        return True
    if "input" in table:
        whole = places["input"]
        for path in whole.rglob("*") if whole.is_dir() else [whole]:
            with open(path, "rb", buffering=0) as file:  # into the page cache
                while file.read(1 << 20):
                    pass

    rounds = args.rounds or table.get("rounds", 7)
    rows = {command.name: [] for command in commands}
    answers, failures, wrong = {}, {}, []
    for turn in range(rounds + 1):
        for command in commands:
            if command.name in failures or turn > (command.rounds or rounds):
                continue
            try:
                with alone(args.lock):
                    row, answer = command.run(args.timeout)
            except RuntimeError as failure:
                failures[command.name] = str(failure)
                print(f"{name}: {failure}", file=sys.stderr)
                continue
            if turn > 0:
                rows[command.name].append(row)
            if answer is None:
                continue
            answers.setdefault(command.name, answer)
            reference = next(iter(answers.values()))
            if answer != reference and command.name not in wrong:
                wrong.append(command.name)
                print(
                    f"{name}: {command.name} answers otherwise than {next(iter(answers))}:\n{answer[:600]}\ninstead of\n{reference[:600]}",
                    file=sys.stderr,
                )
        print(f"{name}: round {turn} of {rounds}", file=sys.stderr, end="\r" if sys.stderr.isatty() else "\n")
    commands = [command for command in commands if rows[command.name]]
    results, first = [], None
    for command in commands:
        walls = [row["wall_s"] for row in rows[command.name]]
        first = first or statistics.median(walls)
        results.append(
            {
                "name": command.name,
                "command": command.public(),
                "env": command.env,
                "version": command.says_version(places),
                "wall_s": spread(walls),
                "cpu_s": spread([row["user_s"] + row["sys_s"] for row in rows[command.name]]),
                "memory": None if args.no_memory else command.memory(args.timeout),
                "own_time": command.seconds is not None,
                "times_first": statistics.median(walls) / first,
                "same_answer": command.name not in wrong if command.answer else None,
                "rows": rows[command.name],
            }
        )
    report = {
        "set": name,
        "what": table["what"],
        "input": table.get("input"),
        "when": now(),
        "machine": facts,
        "rounds": rounds,
        "answer": next(iter(answers.values()), ""),
        "failures": failures,
        "results": results,
    }
    text = as_table(report)
    print(text)
    if not args.dry:
        folder = BENCH / "runs" / f"{now()[:10]}-{args.kind or kind_of(facts)}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.json").write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
        (folder / f"{name}.md").write_text(text)
    return not wrong and not failures


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%MZ")


def as_table(report):
    facts = report["machine"]
    lines = [
        f"# {report['set']}",
        "",
        report["what"],
        "",
        f"{facts['cpu']}, {facts['cores']} cores, caches {', '.join(f'{k} {v}' for k, v in facts['caches'].items())}, "
        f"{facts['memory_gb']} GB, Linux {facts['kernel']}, {facts['rustc']}; commit {facts['commit']}; {report['when']}.",
        f"{report['rounds']} alternating rounds after one to warm up; whole process, from start to exit, unless it is marked. CPU is user + system. "
        "Memory is sampled in a run of its own: RSS of the largest single process, PSS of the process tree.",
        "",
        "| program | median s | min | max | times the first | CPU s | RSS MB | PSS tree MB | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in report["results"]:
        wall = r["wall_s"]
        memory = " | " if r["memory"] is None else f"{r['memory']['rss_max_mb']:.1f} | {r['memory']['pss_tree_mb']:.1f}"
        note = {True: "", False: "**another answer**", None: "answer not compared"}[r["same_answer"]]
        note += " the query alone, as it says itself" if r["own_time"] else ""
        name = r["name"].replace("|", chr(92) + "|")
        lines.append(
            f"| {name} | {wall['median']:.4f} | {wall['min']:.4f} | {wall['max']:.4f} | {r['times_first']:.2f} | "
            f"{r['cpu_s']['median']:.3f} | {memory} | {note} |"
        )
    lines += ["", "```"]
    for r in report["results"]:
        env = "".join(f"{key}={value} " for key, value in r["env"].items())
        lines.append(f"{r['name']:20} {env}{r['command']}" + (f"    # {r['version']}" if r["version"] else ""))
    lines += ["```", ""] + [f"Failed: {failure}" for failure in report["failures"].values()]
    return "\n".join(lines) + "\n"


def main():
    every = sorted(file.stem for file in (BENCH / "sets").glob("*.toml"))
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("set", nargs="+", help=f"one of {', '.join(every)}; or a pattern such as 'word-count-*'; or all")
    args.add_argument("--peers", action="append", default=[], metavar="FILE", help="TOML with programs that are not ours")
    args.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND", help="one such program")
    args.add_argument("--only", metavar="REGEX", help="only commands whose names match")
    args.add_argument("--rounds", type=int, metavar="N", help="instead of the set's own number")
    args.add_argument("--kind", metavar="WORD", help="the machine's kind, for the folder's name (default: from the CPU)")
    args.add_argument("--lock", metavar="FILE", help="hold this lock during every run, where timings of others use it too")
    args.add_argument("--timeout", type=float, default=300, metavar="S", help="end a program that takes longer (default 300)")
    args.add_argument("--no-memory", action="store_true", help="leave out the runs that sample memory")
    args.add_argument("--dry", action="store_true", help="print only, write no files")
    args = args.parse_args()
    names = [name for name in every if any(s == "all" or fnmatch.fnmatch(name, s) for s in args.set)]
    if not names:
        sys.exit(f"run.py: no set is called {' or '.join(args.set)}; there are {', '.join(every)}")
    facts = machine()
    return 0 if all([measure(name, args, facts) for name in names]) else 1


if __name__ == "__main__":
    sys.exit(main())
