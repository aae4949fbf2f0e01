"""Puts points into clusters, each around its mean (Lloyd's algorithm).

python k_means.py POINTS.csv CLUSTERS

Each column is a coordinate.
"""

import sys
from typing import Any

import numpy

import gristmill as gm

Centres = Any  # an array of NumPy: a row for each cluster


def k_means(path: str, clusters: int, steps: int = 100) -> Centres:
    """The centres of the clusters. The first points are the first centres."""
    points = gm.read_csv(path).map(lambda row: tuple(map(float, row.values()))).cache()

    def step(centres: Centres) -> Centres:
        def sums(batch: list[tuple[float, ...]]) -> list[tuple[int, Any]]:
            """For each cluster, the sum of its points of a batch, and their number."""
            rows = numpy.array(batch)
            nearest = ((rows[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
            each = numpy.unique(nearest)
            return [(int(k), numpy.append(rows[nearest == k].sum(axis=0), (nearest == k).sum())) for k in each]

        after = centres.copy()
        for cluster, total in points.map_batches(sums).reduce_by_key(lambda a, b: a + b):
            after[cluster] = total[:-1] / total[-1]
        return after

    return gm.iterate(numpy.array(points.take(clusters)), step, steps=steps, until=numpy.allclose)


if __name__ == "__main__":
    for centre in k_means(sys.argv[1], int(sys.argv[2])):
        print(*centre)
