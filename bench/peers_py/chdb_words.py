"""Word count as a user of ClickHouse writes it (pip install chdb)."""

import chdb
from arguments import parse

args = parse()
words = {"alpha": r"extractAll(upper(line), '[A-Z][A-Z\']*')", "space": "splitByWhitespace(line)"}[args.tokens]
print(
    chdb.query(
        f"""
    SELECT arrayJoin({words}) AS word, count() AS n FROM file('{args.file}', LineAsString)
    GROUP BY word ORDER BY n DESC, word LIMIT {args.top}
    SETTINGS max_threads = {args.threads}, max_memory_usage = 0
""",
        "TabSeparatedRaw",
    ),
    end="",
)
