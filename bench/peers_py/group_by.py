"""Sums pairs of 32-bit numbers by key, as users of DuckDB, Polars and ClickHouse do.

Needs pip install duckdb polars chdb.

The pairs are loaded first; the seconds that are printed are those of the query alone, over data in memory.
"""

import argparse
import os
import time

import numpy as np

args = argparse.ArgumentParser()
args.add_argument("engine", choices=["duckdb", "polars", "chdb"])
args.add_argument("file")
args.add_argument("--threads", type=int, default=2)
args = args.parse_args()
os.environ["POLARS_MAX_THREADS"] = str(args.threads)  # before polars is imported

pairs = np.fromfile(args.file, dtype=[("k", "<u4"), ("v", "<u4")])
keys, values = np.ascontiguousarray(pairs["k"]), np.ascontiguousarray(pairs["v"])
del pairs
if args.engine == "duckdb":
    import duckdb

    base = duckdb.connect(config={"threads": args.threads, "preserve_insertion_order": False})
    columns = {"k": keys, "v": values}
    base.execute("CREATE TABLE t AS SELECT k, v FROM columns")
    del columns, keys, values
    began = time.perf_counter()
    rows = base.execute("SELECT k, sum(v) AS s FROM t GROUP BY k ORDER BY s DESC, k LIMIT 10").fetchall()
elif args.engine == "polars":
    import polars as pl

    table = pl.DataFrame({"k": keys, "v": values})
    began = time.perf_counter()
    rows = (
        table.lazy()
        .group_by("k")
        .agg(pl.col("v").cast(pl.UInt64).sum().alias("s"))
        .sort(["s", "k"], descending=[True, False])
        .head(10)
        .collect()
        .rows()
    )
else:
    import chdb.session

    session = chdb.session.Session()
    session.query("CREATE TABLE t (k UInt32, v UInt32) ENGINE = Memory")
    session.query(f"INSERT INTO t SELECT * FROM file('{args.file}', RowBinary, 'k UInt32, v UInt32')")
    began = time.perf_counter()
    text = str(
        session.query(f"SELECT k, sum(v) AS s FROM t GROUP BY k ORDER BY s DESC, k LIMIT 10 SETTINGS max_threads = {args.threads}", "TabSeparated")
    )
    rows = [line.split("\t") for line in text.splitlines()]
seconds = time.perf_counter() - began
for key, total in rows:
    print(f"{key}\t{total}")
print(f"seconds {seconds:.6f}")
