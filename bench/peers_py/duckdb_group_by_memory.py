"""Sums pairs of 32-bit numbers by key within little memory, as a user of DuckDB does (pip install duckdb numpy).

The pairs lie in a table of a database file beside the input, which is made if it is not there; the seconds that are
printed are those of the query alone.
"""

import argparse
import os
import time

import duckdb

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("file")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--memory", default="200MiB")
parser.add_argument("--spill-dir", default="/tmp")
args = parser.parse_args()

path = f"{args.file}.duckdb"
if not os.path.exists(path):
    import numpy

    pairs = numpy.fromfile(args.file, dtype=[("k", "<u4"), ("v", "<u4")])
    columns = {"k": numpy.ascontiguousarray(pairs["k"]), "v": numpy.ascontiguousarray(pairs["v"])}
    with duckdb.connect(f"{path}.new") as base:
        base.execute("CREATE TABLE t AS SELECT k, v FROM columns")
    os.rename(f"{path}.new", path)

base = duckdb.connect(
    path,
    read_only=True,
    config={
        "threads": args.threads,
        "memory_limit": args.memory,
        "temp_directory": args.spill_dir,
        "preserve_insertion_order": False,
    },
)
began = time.perf_counter()
rows = base.execute("SELECT k, sum(v) AS s FROM t GROUP BY k ORDER BY s DESC, k LIMIT 10").fetchall()
seconds = time.perf_counter() - began
for key, total in rows:
    print(f"{key}\t{total}")
print(f"seconds {seconds:.6f}")
