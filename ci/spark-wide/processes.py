"""The processes of an application: its driver and its executors."""

import os
import signal
import subprocess
import time


def java_processes():
    """The driver and the executors below this process, by name."""
    found, waiting = {}, [os.getpid()]
    while waiting:
        parent = waiting.pop()
        for process in subprocess.run(["pgrep", "-P", str(parent)], capture_output=True, text=True).stdout.split():
            waiting.append(int(process))
            try:
                line = open(f"/proc/{process}/cmdline").read().split("\0")
            except OSError:  # it has just ended
                continue
            if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in line:
                found["executor " + line[line.index("--executor-id") + 1]] = process
            elif "org.apache.spark.deploy.SparkSubmit" in line:
                found["driver"] = process
    return found


def executors():
    """The process of each live executor, by Spark's name of it."""
    return {name.split()[1]: int(process) for name, process in java_processes().items() if name != "driver"}


def await_executors(count, limit_s=120):
    """Waits until this many executors live."""
    end = time.monotonic() + limit_s
    while len(executors()) < count:
        if time.monotonic() > end:
            raise AssertionError(f"{len(executors())} executors instead of {count} after {limit_s} s")
        time.sleep(0.2)


def kill_one(random):
    """Kills an executor as the kernel does when memory runs out. Returns Spark's name of it."""
    name, process = random.choice(sorted(executors().items()))
    os.kill(process, signal.SIGKILL)
    return name
