"""Sorting the lines of a file as a user of DuckDB writes it (pip install duckdb)."""

import argparse

import duckdb

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("file")
parser.add_argument("output")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--memory", default="1GiB")
parser.add_argument("--spill-dir", default="/tmp")
args = parser.parse_args()
base = duckdb.connect(
    config={
        "threads": args.threads,
        "memory_limit": args.memory,
        "temp_directory": args.spill_dir,
        "preserve_insertion_order": False,
    }
)
base.execute(f"""
    COPY (
        SELECT line FROM read_csv('{args.file}', columns = {{'line': 'VARCHAR'}}, delim = '\x01', quote = '', escape = '',
                                   header = false, auto_detect = false, encoding = 'utf-8')
        ORDER BY line
    ) TO '{args.output}' (FORMAT csv, DELIMITER '\x01', QUOTE '', ESCAPE '', HEADER false)
""")
