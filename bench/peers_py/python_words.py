"""Word count of a text file, in Python, by different libraries: prints the most frequent words.

    python python_words.py WAY FILE

Each way counts all words; those that end with `top` let the library choose the most frequent ones.
"""
import heapq
import os
import sys
from collections import Counter

WORKERS = 2
TOP = 10


def pairs(line):
    for word in line.split():
        yield word, 1


def gristmill():
    import gristmill as gm

    return dict(gm.read_text(FILE).flat_map(str.split).count_by_value().collect())


def gristmill_top():
    import gristmill as gm

    return dict(gm.read_text(FILE).flat_map(str.split).count_by_value().top(TOP, by="value").collect())


def gristmill_generator():
    import gristmill as gm

    return dict(gm.read_text(FILE).flat_map(pairs).reduce_by_key(gm.sum).collect())


def gristmill_arrow():
    import gristmill as gm

    table = gm.word_count(FILE).to_arrow()
    best = table.sort_by([("value", "descending"), ("key", "ascending")]).slice(0, TOP).to_pydict()
    return dict(zip(best["key"], best["value"]))


def parts():
    """Cuts the file at line ends, into a few parts for each worker."""
    size, count = os.path.getsize(FILE), 4 * WORKERS
    with open(FILE, "rb") as file:
        cuts = [0]
        for number in range(1, count):
            file.seek(size * number // count)
            file.readline()
            cuts.append(file.tell())
    return list(zip(cuts, cuts[1:] + [size]))


def text(part):
    with open(FILE, "rb") as file:
        file.seek(part[0])
        return file.read(part[1] - part[0]).decode()


def count(part):
    return Counter(text(part).split())


def count_pairs(part):
    counts = {}
    for line in text(part).split("\n"):
        for word, one in pairs(line):
            counts[word] = counts.get(word, 0) + one
    return counts


def pool(function):
    import multiprocessing

    with multiprocessing.Pool(WORKERS) as workers:
        counts = Counter()
        for found in workers.imap_unordered(function, parts()):
            counts.update(found)
    return counts


def multiprocessing_():
    return pool(count)


def multiprocessing_generator():
    return pool(count_pairs)


def one_process():
    with open(FILE, encoding="utf-8") as file:
        return Counter(word for line in file for word in line.split())


WAYS = {
    "gristmill": gristmill,
    "gristmill-top": gristmill_top,
    "gristmill-generator": gristmill_generator,
    "gristmill-arrow": gristmill_arrow,
    "multiprocessing": multiprocessing_,
    "multiprocessing-generator": multiprocessing_generator,
    "one-process": one_process,
}

if __name__ == "__main__":
    FILE = sys.argv[2]
    for word, number in heapq.nsmallest(TOP, WAYS[sys.argv[1]]().items(), key=lambda pair: (-pair[1], pair[0])):
        print(f"{word}\t{number}")
