"""The tasks as a user of Polars writes them. Words end at white space of ASCII."""

import os

from tasks import WORKERS

os.environ["POLARS_MAX_THREADS"] = str(WORKERS)
import numpy
import polars


def words(text: str, rows: list[str]) -> dict[str, int]:
    line = polars.col("line")
    for blank in "\t\r\f\v":
        line = line.str.replace_all(blank, " ", literal=True)
    lines = polars.scan_csv(text, has_header=False, separator="\x01", quote_char=None, schema={"line": polars.String}, encoding="utf8-lossy")
    found = lines.select(line.str.split(" ").alias("word")).explode("word").filter(polars.col("word") != "")
    return dict(found.group_by("word").agg(polars.len()).collect(engine="streaming").iter_rows())


def distinct(text: str, rows: list[str]) -> list[str]:
    lines = polars.scan_csv(rows, has_header=False, separator="\x01", quote_char=None, schema={"line": polars.String})
    return lines.unique().collect(engine="streaming")["line"].to_list()


def groups(text: str, rows: list[str]) -> dict[int, float]:
    def median(values: polars.Series) -> float:
        return float(numpy.partition(values.to_numpy(), len(values) // 2)[len(values) // 2])

    by_key = polars.read_parquet(rows).group_by("key")
    found = by_key.agg(polars.col("value").map_batches(median, return_dtype=polars.Float64, returns_scalar=True))
    return dict(found.iter_rows())


def totals(text: str, rows: list[str]) -> dict[int, float]:
    return dict(polars.scan_parquet(rows).group_by("key").agg(polars.col("value").sum()).collect().iter_rows())
