"""The tasks as a user of DuckDB writes them. Words end at white space of ASCII."""

import itertools
import operator
import os
import tempfile

import duckdb
from tasks import WORKERS, median


def base() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": WORKERS, "preserve_insertion_order": False})


def words(text: str, rows: list[str]) -> dict[str, int]:
    found = base().execute(
        r"""
        SELECT word, count(*) FROM (
            SELECT unnest(string_split(translate(line, E'\t\r\f\x0b', '    '), ' ')) AS word
            FROM read_csv(?, columns = {'line': 'VARCHAR'}, delim = E'\x01', quote = '', escape = '', header = false,
                          auto_detect = false, max_line_size = 20000000, ignore_errors = true, strict_mode = false))
        WHERE word <> '' GROUP BY word
        """,
        [text],
    )
    return dict(found.fetchall())


def groups(text: str, rows: list[str]) -> dict[int, float]:
    found = base().execute("SELECT key, list(value) FROM read_parquet(?) GROUP BY key", [rows])
    return {key: median(values) for key, values in found.fetchall()}


def totals(text: str, rows: list[str]) -> dict[int, float]:
    return dict(base().execute("SELECT key, sum(value) FROM read_parquet(?) GROUP BY key", [rows]).fetchall())


def large(text: str, rows: list[str]) -> list[float]:
    """As a list for each key it outgrows the memory, so rows are sorted and grouped as they come."""
    with tempfile.TemporaryDirectory() as folder:
        ran = base()
        ran.execute("SET memory_limit = ?", [f"{int(os.environ['BENCH_MIB']) * 2 // 5}MiB"])
        ran.execute("SET temp_directory = ?", [folder])
        ran.execute("SELECT key, value FROM read_parquet(?) ORDER BY key", [rows])
        come = itertools.chain.from_iterable(iter(lambda: ran.fetchmany(100_000), []))
        return [median([value for _, value in of]) for _, of in itertools.groupby(come, operator.itemgetter(0))]
