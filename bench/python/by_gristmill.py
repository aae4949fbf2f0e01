"""The tasks as a user of Gristmill writes them."""

from tasks import TINY_TASKS, WORKERS, median, pairs, square

import gristmill as gm

gm.configure(workers=WORKERS)


def words(text: str, rows: list[str]) -> dict[str, int]:
    return gm.read_text(text).flat_map(str.split).count_by_value().to_dict()


def pairs_(text: str, rows: list[str]) -> dict[str, int]:
    return gm.read_text(text).flat_map(pairs).reduce_by_key(gm.sum).to_dict()


def groups(text: str, rows: list[str]) -> dict[int, float]:
    keyed = gm.read_parquet(rows).pluck("key", "value")
    return keyed.group_by_key().map_groups(lambda key, values: [(key, median(values))]).to_dict()


def totals(text: str, rows: list[str]) -> dict[int, float]:
    return gm.read_parquet(rows).pluck("key", "value").reduce_by_key(gm.sum).to_dict()


def large(text: str, rows: list[str]) -> list[float]:
    keyed = gm.read_parquet(rows).pluck("key", "value")
    return list(keyed.group_by_key().map_groups(lambda key, values: [median(values)]))


def distinct(text: str, rows: list[str]) -> list[str]:
    return gm.read_text(rows).distinct().collect()


def tiny(text: str, rows: list[str]) -> list[int]:
    return gm.range(TINY_TASKS).map(square).collect()


def start(text: str, rows: list[str]) -> list[int]:
    return gm.range(1).map(square).collect()
