"""Prints the three best results of each player.

python top_per_group.py RESULTS.csv

Results have the columns `player`, `points` and `game`.
"""

import sys
from typing import Any

import gristmill as gm


def best(path: str, count: int = 3) -> gm.Dataset[tuple[str, Any]]:
    """For each player a list of points and game, the best ones first."""
    results = gm.read_csv(path).map(lambda row: (row["player"], (int(row["points"]), row["game"])))
    return results.reduce_by_key(gm.top(count))


if __name__ == "__main__":
    for player, results in best(sys.argv[1]):
        print(player, *(f"{points} ({game})" for points, game in results))
