"""The tasks as a user of pandas writes them. It has one thread."""

import numpy
import pandas


def words(text: str, rows: list[str]) -> dict[str, int]:
    with open(text, encoding="utf-8") as file:
        return pandas.Series(file.read().split()).value_counts(sort=False).to_dict()


def groups(text: str, rows: list[str]) -> dict[int, float]:
    table = pandas.concat([pandas.read_parquet(path) for path in rows])
    by_key = table.groupby("key", sort=False)["value"]
    return by_key.apply(lambda values: numpy.partition(values.to_numpy(), len(values) // 2)[len(values) // 2]).to_dict()


def totals(text: str, rows: list[str]) -> dict[int, float]:
    table = pandas.concat([pandas.read_parquet(path, columns=["key", "value"]) for path in rows])
    return table.groupby("key", sort=False)["value"].sum().to_dict()
