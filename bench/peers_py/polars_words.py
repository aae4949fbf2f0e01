"""Word count as a user of Polars writes it (pip install polars)."""

import os

from arguments import parse, show

args = parse()
os.environ["POLARS_MAX_THREADS"] = str(args.threads)
import polars as pl  # noqa: E402  reads the number of threads when imported

line = pl.col("line")
words = {
    "alpha": line.str.extract_all(r"[A-Za-z][A-Za-z']*"),
    # splitting at one character is faster than a regular expression; the empty strings go below
    "space": line.str.replace_all("\t", " ", literal=True)
    .str.replace_all("\r", " ", literal=True)
    .str.replace_all("\f", " ", literal=True)
    .str.split(" "),
}[args.tokens]
counts = (
    pl.scan_csv(
        args.file, has_header=False, separator="\x01", quote_char=None, new_columns=["line"], schema={"line": pl.String}, encoding="utf8-lossy"
    )
    .select(words.alias("word"))
    .explode("word")
    .filter(pl.col("word") != "")
    # upper case afterwards: before, letters beyond ASCII would become words (the long s an S)
    .with_columns(pl.col("word").str.to_uppercase() if args.tokens == "alpha" else pl.col("word"))
    .group_by("word")
    .agg(pl.len().alias("n"))
    .sort(["n", "word"], descending=[True, False])
    .head(args.top)
)
show(counts.collect(engine="streaming").iter_rows())
