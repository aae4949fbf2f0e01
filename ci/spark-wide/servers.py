"""Programs submitted to a standalone cluster, Spark Connect, and the Thrift server.

The oracle is ten sequential lines.
"""

import os
import subprocess
import threading
import time

from cluster import LIMIT_S, SPARK, process, standalone
from session import FOLDER, JAR, MANAGER, main, require, settings

ROWS = 100_000


def submit(*arguments):
    """The command line of spark-submit with our settings and jar."""
    ours = {key: value for key, value in settings(True).items() if key != "spark.jars"}
    return [os.path.join(SPARK, "bin", "spark-submit"), "--jars", JAR, *options(ours), *arguments]


def options(conf):
    return [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]


def server(name, conf):
    """The command line of a server of Spark that has two executors."""
    more = options({"spark.executor.memory": "1g"} | conf)
    return submit("--master", "local-cluster[2,1,1024]", *more, "--class", name, "spark-internal")


def fresh(name):
    folder = os.path.join(FOLDER, name)
    os.makedirs(folder, exist_ok=True)
    return folder


def program():
    """The jar of Sums.java."""
    classes = fresh("classes")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Sums.java")
    subprocess.run(["javac", "--release", "17", "-cp", os.path.join(SPARK, "jars", "*"), "-d", classes, source], check=True)
    subprocess.run(["jar", "--create", "--file", os.path.join(FOLDER, "sums.jar"), "-C", classes, "."], check=True)
    return os.path.join(FOLDER, "sums.jar")


def submitted(mode):
    answer = os.path.join(FOLDER, "answer")
    with standalone([fresh("local0"), fresh("local1")]) as master:
        with open(os.path.join(FOLDER, "submit.log"), "w") as log:
            subprocess.run(
                submit(
                    "--master",
                    master,
                    "--deploy-mode",
                    mode,
                    "--driver-memory",
                    "1g",
                    "--executor-memory",
                    "1g",
                    "--executor-cores",
                    "1",
                    "--class",
                    "Sums",
                    program(),
                    answer,
                ),
                stdout=log,
                stderr=log,
                env=os.environ | {"SPARK_HOME": SPARK},
                timeout=LIMIT_S,
                check=True,
            )
        end = time.monotonic() + LIMIT_S
        while not os.path.exists(answer) and time.monotonic() < end:  # in cluster mode spark-submit does not wait
            time.sleep(0.2)
        require(os.path.exists(answer), "the program has not ended")
        said = open(answer).read()
        require(said == "right with " + MANAGER, said)


def standalone_client():
    submitted("client")


def standalone_cluster():
    submitted("cluster")


def connect():
    """DataFrame jobs of three clients at once, through a Connect server."""
    port = 15102
    expected = {k: sum(range(k, ROWS, 97)) for k in range(97)}
    wrong = []

    def client():
        from pyspark.sql.connect.session import SparkSession

        spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
        try:
            for _ in range(2):
                sums = spark.range(0, ROWS, 1, 8).selectExpr("id % 97 AS k", "id").groupBy("k").sum("id").collect()
                rows = spark.range(ROWS).join(spark.range(0, ROWS, 7), "id").repartition(5).count()
                if dict(map(tuple, sums)) != expected or rows != len(range(0, ROWS, 7)):
                    wrong.append((sums[:3], rows))
        except Exception as error:
            wrong.append(repr(error)[:2000])

    conf = {"spark.connect.grpc.binding.port": port, "spark.sql.autoBroadcastJoinThreshold": -1}
    command = server("org.apache.spark.sql.connect.service.SparkConnectServer", conf)
    with process("connect", command, "Spark Connect server started") as log:
        threads = [threading.Thread(target=client) for _ in range(3)]
        [thread.start() for thread in threads]
        [thread.join(LIMIT_S) for thread in threads]
        require(not any(thread.is_alive() for thread in threads), "a client has no answer")
        require(not wrong, f"wrong: {wrong}")
        require("Gristmill is active" in open(log).read(), "the plugin is not active")


def thrift():
    """Queries of three beeline sessions at once, through the Thrift server."""
    port = 10117
    expected = [f"{k}\t{sum(range(k, ROWS, 97))}" for k in range(97)]
    query = f"SELECT id % 97 AS k, sum(id) FROM range(0, {ROWS}, 1, 8) GROUP BY id % 97 ORDER BY k"
    conf = {
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={FOLDER}/metastore;create=true",
        "spark.sql.warehouse.dir": f"{FOLDER}/warehouse",
        "spark.hadoop.hive.server2.thrift.port": port,
        "spark.driver.extraJavaOptions": f"-Dderby.stream.error.file={FOLDER}/derby.log",
    }
    command = server("org.apache.spark.sql.hive.thriftserver.HiveThriftServer2", conf)
    with process("thrift", command, "ThriftBinaryCLIService on port") as log:
        clients = [
            subprocess.Popen(
                [
                    os.path.join(SPARK, "bin", "beeline"),
                    "-u",
                    f"jdbc:hive2://127.0.0.1:{port}/default",
                    "-n",
                    "someone",
                    "--silent=true",
                    "--showHeader=false",
                    "--outputformat=tsv2",
                    "-e",
                    ";".join([query] * 3),
                ],
                stdout=subprocess.PIPE,
                stderr=open(os.path.join(FOLDER, f"beeline{number}.log"), "w"),
                text=True,
                env=os.environ | {"SPARK_HOME": SPARK},
            )
            for number in range(3)
        ]
        answers = [client.communicate(timeout=LIMIT_S)[0] for client in clients]
        for answer in answers:
            rows = [line.split("> ")[-1] for line in answer.splitlines() if line]  # beeline puts its prompt before the first
            require(rows == expected * 3, f"{len(rows)} rows: {rows[:5]}")
        require("Gristmill is active" in open(log).read(), "the plugin is not active")


if __name__ == "__main__":
    main({"standalone-client": standalone_client, "standalone-cluster": standalone_cluster, "connect": connect, "thrift": thrift})
