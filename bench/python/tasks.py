"""The tasks that the programs are compared in: what each gets, and the functions in Python that all of them call."""

import os
from collections.abc import Iterator

#: Tasks, and what each measures. A program that cannot do one leaves it out.
TASKS = {
    "words": "count the words of a text: `flat_map(str.split).count_by_value()`",
    "pairs": "the same with a generator of (word, 1)",
    "groups": "a Python function for each group of rows (the upper median)",
    "large": "the same for more rows than fit in memory",
    "totals": "sums of one column by another, of rows with 42 columns",
    "distinct": "the different ones of 2 million addresses, a line each",
    "tiny": "100,000 tiny tasks",
    "start": "the first job of a program, of one record",
    "second": "its second job",
}

WORKERS = int(os.environ.get("BENCH_WORKERS") or len(os.sched_getaffinity(0)))
TINY_TASKS = 100_000


def pairs(line: str) -> Iterator[tuple[str, int]]:
    for word in line.split():
        yield word, 1


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def square(number: int) -> int:
    return number * number
