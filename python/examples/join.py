"""Adds up what the customers of each city have spent, from a table of orders and one of customers.

python join.py ORDERS.csv CUSTOMERS.csv

Orders have the columns `customer` and `cents`, customers the columns `customer` and `city`.
"""

import sys

import gristmill as gm


def spent(orders: str, customers: str) -> gm.Dataset[tuple[str, int]]:
    """Cents for each city. Orders of unknown customers are those of the city `?`."""
    cents = gm.read_csv(orders).map(lambda row: (row["customer"], int(row["cents"])))
    cities = gm.read_csv(customers).map(lambda row: (row["customer"], row["city"]))
    return cents.join(cities, "left").map(city_and_cents).reduce_by_key(gm.sum)


def city_and_cents(joined: tuple[str, tuple[int, str | None]]) -> tuple[str, int]:
    """Takes a city, and the cents of one order, out of a joined record."""
    _, (cents, city) = joined
    return city or "?", cents


if __name__ == "__main__":
    for city, cents in spent(*sys.argv[1:]):
        print(f"{city}: {cents / 100:.2f}")
