"""Counts the different users of each day.

python distinct_users.py LOG...

A line of the log begins with a time and a user: `2026-11-24T08:15:00 ann /index`.
"""

import sys

import gristmill as gm


def users(paths: list[str]) -> gm.Dataset[tuple[str, int]]:
    """The number of users for each day."""
    seen = gm.read_text(paths).map(day_and_user).distinct()
    return seen.map(lambda pair: pair[0]).count_by_value()


def day_and_user(line: str) -> tuple[str, str]:
    """The day and the user that a line names."""
    time, user = line.split(maxsplit=2)[:2]
    return time.partition("T")[0], user


if __name__ == "__main__":
    for day, count in users(sys.argv[1:]):
        print(day, count)
