"""Counts the words of text files and prints the twenty that occur most often.

python word_count.py FILE...
"""

import sys

import gristmill as gm


def words(paths: list[str]) -> gm.Dataset[tuple[str, int]]:
    """How often each word occurs."""
    return gm.read_text(paths).flat_map(str.split).count_by_value()


if __name__ == "__main__":
    for word, count in words(sys.argv[1:]).top(20, by="value"):
        print(count, word)
