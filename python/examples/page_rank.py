"""The most important pages of a web by PageRank.

python page_rank.py LINKS.csv

Links have columns `page` and `to`.
"""

import sys

import gristmill as gm

DAMPING = 0.85


def page_rank(path: str, steps: int = 20) -> gm.Dataset[tuple[str, float]]:
    """The rank of each page; all ranks together are 1, unless a page has no links."""
    links = gm.read_csv(path).pluck("page", "to").distinct()
    outgoing = links.group_by_key().map_groups(lambda page, to: [(page, to)]).cache()
    pages = links.flat_map(list).distinct().cache()
    base = (1 - DAMPING) / pages.count()

    def step(ranks: gm.Dataset[tuple[str, float]]) -> gm.Dataset[tuple[str, float]]:
        given = outgoing.join(ranks).flat_map(lambda row: [(to, row[1][1] / len(row[1][0])) for to in row[1][0]])
        received = given.reduce_by_key(gm.sum)
        zero = pages.map(lambda page: (page, 0.0))
        return zero.join(received, "left").map(lambda row: (row[0], base + DAMPING * (row[1][1] or 0.0)))

    count = pages.count()
    return gm.iterate(pages.map(lambda page: (page, 1 / count)), step, steps=steps)


if __name__ == "__main__":
    for page, rank in page_rank(sys.argv[1]).top(10, by="value"):
        print(f"{rank:.4f}  {page}")
