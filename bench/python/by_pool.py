"""The tasks with multiprocessing, tuned by hand: few large messages, and as much work as possible in the workers."""

import os
from collections import Counter
from collections.abc import Iterator
from multiprocessing import get_context

from tasks import TINY_TASKS, WORKERS, square
from tasks import pairs as pairs_of


def pieces(path: str) -> Iterator[tuple[str, int, int]]:
    """A piece of the file for each worker. It ends where a line does."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        begin = 0
        for number in range(1, WORKERS + 1):
            file.seek(max(begin, size * number // WORKERS))
            file.readline()
            end = size if number == WORKERS else file.tell()
            yield path, begin, end
            begin = end


def text_of(piece: tuple[str, int, int]) -> str:
    path, begin, end = piece
    with open(path, "rb") as file:
        file.seek(begin)
        return file.read(end - begin).decode()


def count_words(piece: tuple[str, int, int]) -> Counter[str]:
    return Counter(text_of(piece).split())


def count_pairs(piece: tuple[str, int, int]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for line in text_of(piece).split("\n"):
        for word, one in pairs_of(line):
            counts[word] = counts.get(word, 0) + one
    return counts


def words(text: str, rows: list[str]) -> dict[str, int]:
    with get_context("fork").Pool(WORKERS) as pool:
        first, *others = pool.imap_unordered(count_words, pieces(text))
    for other in others:
        first.update(other)
    return first


def pairs_(text: str, rows: list[str]) -> dict[str, int]:
    with get_context("fork").Pool(WORKERS) as pool:
        first, *others = pool.imap_unordered(count_pairs, pieces(text))
    for other in others:
        for word, count in other.items():
            first[word] = first.get(word, 0) + count
    return first


def share(of: tuple[list[str], int]) -> dict[int, float]:
    """The groups whose keys belong to one worker."""
    import numpy
    import pyarrow.parquet

    files, number = of
    table = pyarrow.parquet.read_table(files, use_threads=False)
    keys, values = table["key"].to_numpy(), table["value"].to_numpy()
    mine = keys % WORKERS == number
    keys, values = keys[mine], values[mine]
    order = numpy.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    starts = numpy.flatnonzero(numpy.r_[True, keys[1:] != keys[:-1]])
    found = zip(keys[starts].tolist(), numpy.split(values, starts[1:]))
    return {key: float(numpy.partition(group, len(group) // 2)[len(group) // 2]) for key, group in found}


def groups(text: str, rows: list[str]) -> dict[int, float]:
    with get_context("fork").Pool(WORKERS) as pool:
        first, *others = pool.imap_unordered(share, [(rows, number) for number in range(WORKERS)])
    for other in others:
        first.update(other)
    return first


def tiny(text: str, rows: list[str]) -> list[int]:
    with get_context("fork").Pool(WORKERS) as pool:
        return pool.map(square, range(TINY_TASKS))


def start(text: str, rows: list[str]) -> list[int]:
    with get_context("fork").Pool(WORKERS) as pool:
        return pool.map(square, range(1))
