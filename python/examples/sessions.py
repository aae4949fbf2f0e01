"""Cuts the visits of each user into sessions: a pause of more than half an hour ends one.

python sessions.py VISITS.jsonl

Visits have a `user` and a `time` in seconds.
"""

import sys
from collections.abc import Iterator
from typing import NamedTuple

import gristmill as gm

PAUSE_SECONDS = 30 * 60


class Session(NamedTuple):
    user: str
    begin: int
    end: int
    visits: int


def sessions(path: str) -> gm.Dataset[Session]:
    """The sessions of all users."""
    visits = gm.read_jsonl(path).map(lambda visit: (visit["user"], visit["time"]))
    return visits.group_by_key().map_groups(cut)


def cut(user: str, times: list[int]) -> Iterator[Session]:
    """The sessions of one user. The values of a group come in any order."""
    times = sorted(times)
    begin = 0
    for next_ in range(1, len(times) + 1):
        if next_ == len(times) or times[next_] - times[next_ - 1] > PAUSE_SECONDS:
            yield Session(user, times[begin], times[next_ - 1], next_ - begin)
            begin = next_


if __name__ == "__main__":
    for session in sessions(sys.argv[1]):
        print(f"{session.user}: {session.visits} visits in {session.end - session.begin} s")
