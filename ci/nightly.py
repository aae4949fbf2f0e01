#!/usr/bin/env python3
"""Runs the checks that take too long for `make test`, and notes which passed.

    ci/nightly.py [NAME...]    runs all of them, or those named; the others run if one fails
    ci/nightly.py --list       prints their names, commands and last passes
    ci/nightly.py --old        prints those whose last pass is more than 30 days or 200 commits ago

ci/passed/NAME has the day, the commit and the seconds of the last pass. A check whose tools are missing fails, and says
which command installs them. All of them take hours on two processors; what they print is in target/nightly.
"""

import datetime
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PASSED = ROOT / "ci" / "passed"
LOGS = ROOT / "target" / "nightly"
#: An interpreter with Spark, for the scripts that ask for $PYTHON.
PYTHON = LOGS / "venv" / "bin" / "python"
DAYS, COMMITS = 30, 200
#: The commands, by name, with counts that keep each within some minutes. ci/api.sh is not here: it compares with a
#: release, and RELEASE.md asks for it.
CHECKS = {
    "features": "ci/features.sh",
    "supply": "ci/supply.sh",
    "msrv": "ci/msrv.sh",
    "kill": "ci/kill.sh 500",
    "kill-spill": "ci/kill.sh 100 1 spill",
    "resume": "ci/resume.sh 200",
    "wild": "ci/wild.sh 300",
    "stops": "ci/stops.sh 4",
    "batch": "ci/batch.sh 100",
    "parallel": "cargo build --quiet --locked --package gristmill-cli && python3 -B ci/parallel.py 300",
    "read-errors": "ci/read-errors.sh 200",
    "spill": "ci/spill.sh 1",
    "options": "ci/options.sh 40",
    "fuzz": "ci/fuzz.sh 100000",
    "miri": "ci/miri.sh",
    "sanitizers": "ci/sanitizers.sh",
    "numa": "ci/numa.sh",
    "spark-faults": "ci/spark-faults.sh 1",
    "spark-python-faults": "ci/spark-python-faults.sh 1",
    # Each night an eighth.
    "spark-settings": "PART=$(($(date +%-j) % 8))/8 ci/spark-settings.sh",
    "spark-sql": "ci/spark-sql.sh",
    "spark-versions": "ci/spark-versions.sh 4.0.5 4.3.0",
    "spark-wide": "ci/spark-wide.sh",
    "dist": "ci/dist.sh --twice",
    "installed": "ci/installed.sh target/dist/first",
}


def git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def run(name):
    """Runs a check and notes that it passed. Returns whether it did."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{name}.log"
    print(f"{name:20} {CHECKS[name]}", end="", flush=True)
    began = time.monotonic()
    surroundings = os.environ | {"PYTHON": str(PYTHON)}
    with log.open("w") as out:
        command = ["bash", "-c", CHECKS[name]]
        status = subprocess.run(command, cwd=ROOT, env=surroundings, stdin=subprocess.DEVNULL, stdout=out, stderr=out).returncode
    seconds = round(time.monotonic() - began)
    print(f"  {'passed' if status == 0 else f'FAILED: {log.relative_to(ROOT)}'}, {seconds} s", flush=True)
    if status == 0:
        PASSED.mkdir(exist_ok=True)
        (PASSED / name).write_text(f"{datetime.date.today()} {git('rev-parse', '--short=8', 'HEAD')} {seconds}\n")
    return status == 0


def prepare():
    """Installs what the scripts need and do not install."""
    if subprocess.run(["sh", "ci/needs.sh", "rust", "nightly", "cc", "python", "java", "parallel"], cwd=ROOT).returncode:
        sys.exit(1)
    # Without pyspark, pip has failed before.
    if not PYTHON.with_name("spark-submit").exists():
        subprocess.run([sys.executable, "-m", "venv", PYTHON.parent.parent], check=True)
        subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "pyspark[connect,sql]>=4"], check=True)


def last(name):
    """Returns the day, the commit and the seconds of the last pass, or nothing."""
    file = PASSED / name
    return file.read_text().split() if file.exists() else None


def age(name):
    """Returns what makes the last pass of a check old, in a few words, or nothing."""
    passed = last(name)
    if passed is None:
        return "has never passed"
    day, commit, _ = passed
    days = (datetime.date.today() - datetime.date.fromisoformat(day)).days
    known = subprocess.run(["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=ROOT, capture_output=True).returncode == 0
    commits = int(git("rev-list", "--count", f"{commit}..HEAD")) if known else None
    if days <= DAYS and (commits is None or commits <= COMMITS):
        return None
    return f"passed {days} days{'' if commits is None else f' and {commits} commits'} ago"


def main():
    match sys.argv[1:]:
        case ["--list"]:
            for name, command in CHECKS.items():
                print(f"{name:20} {command:30} {' '.join(last(name) or ['never'])}")
        case ["--old"]:
            for name in CHECKS:
                if old := age(name):
                    print(f"make nightly: {name} {old}")
        case names:
            if unknown := [name for name in names if name not in CHECKS]:
                sys.exit(f"ci/nightly.py: there is no check {unknown[0]}; --list prints their names")
            prepare()
            failed = [name for name in names or CHECKS if not run(name)]
            if failed:
                sys.exit(f"{len(failed)} of {len(names or CHECKS)} checks failed: {', '.join(failed)}")


main()
