#!/usr/bin/env python3
"""Runs the lines of a file in pueue, and ends when the last of them has ended.

    python3 bench/batch/through_pueue.py FOLDER SLOTS FILE      # FOLDER has the daemon's files; the daemon is started if it is not there
    python3 bench/batch/through_pueue.py FOLDER                 # ends the daemon

`pueue wait` looks every two seconds, so the daemon tells each end through a pipe instead.
"""

import json
import os
import pathlib
import subprocess
import sys
import time


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    settings, ends = folder / "pueue.yml", folder / "ends"

    def pueue(*arguments):
        return subprocess.run(["pueue", "-c", settings, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout

    if len(sys.argv) == 2:
        if settings.exists():
            pueue("shutdown")
        return
    if not settings.exists():
        os.mkfifo(ends)
        # YAML includes JSON.
        shared = {"pueue_directory": str(folder), "runtime_directory": str(folder), "use_unix_socket": True}
        daemon = {"callback": f"echo {{{{ result }}}} > {ends}"}
        settings.write_text(json.dumps({"client": {}, "shared": shared, "daemon": daemon}))
        subprocess.run(["pueued", "-d", "-c", settings], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not list(folder.glob("*.socket")):
            time.sleep(0.01)
    pueue("parallel", sys.argv[2])
    commands = pathlib.Path(sys.argv[3]).read_text().splitlines()
    # Open for writing as well, so that it does not end between two ends.
    with os.fdopen(os.open(ends, os.O_RDWR)) as results:
        for command in commands:
            pueue("add", "--", command)
        failed = sum(results.readline().strip() != "Success" for _ in commands)
    pueue("clean")
    sys.exit(failed > 0)


main()
