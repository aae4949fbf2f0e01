"""A standalone cluster: a master and workers of one core each, each with local folders of its own."""

import contextlib
import os
import subprocess
import time

import pyspark
from session import FOLDER

SPARK = os.path.dirname(pyspark.__file__)
LIMIT_S = 600  # for a daemon to come up or a client to end, on a busy machine


def await_text(log, text, process=None):
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        if os.path.exists(log) and text in open(log, errors="replace").read():
            return
        if process and process.poll() is not None:
            break
        time.sleep(0.2)
    raise AssertionError(f"{log} does not say '{text}'")


@contextlib.contextmanager
def process(name, command, ready, **environment):
    """Runs a daemon until the block ends; waits until its log says that it is ready. Yields the path of the log."""
    log = os.path.join(FOLDER, name + ".log")
    with open(log, "w") as out:
        running = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True, env=os.environ | {"SPARK_HOME": SPARK} | environment
        )
    try:
        await_text(log, ready, running)
        yield log
    finally:
        running.terminate()
        try:
            running.wait(30)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


@contextlib.contextmanager
def standalone(local_folders, port=7177):
    """Yields the master's address. Each worker has local folders of its own, separated by commas."""
    launch = [os.path.join(SPARK, "bin", "spark-class")]
    with contextlib.ExitStack() as running:
        running.enter_context(
            process(
                "master",
                [*launch, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"],
                "I have been elected leader",
            )
        )
        for number, folders in enumerate(local_folders):
            running.enter_context(
                process(
                    f"worker{number}",
                    [
                        *launch,
                        "org.apache.spark.deploy.worker.Worker",
                        "--host",
                        "127.0.0.1",
                        "--cores",
                        "2",
                        "--memory",
                        "3g",
                        "--webui-port",
                        "0",
                        "--work-dir",
                        os.path.join(FOLDER, f"work{number}"),
                        f"spark://127.0.0.1:{port}",
                    ],
                    "Successfully registered",
                    SPARK_LOCAL_DIRS=folders,
                )
            )
        yield f"spark://127.0.0.1:{port}"
