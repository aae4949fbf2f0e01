"""Sorts measurements by station, and those of a station by temperature, the warmest first.

python secondary_sort.py MEASUREMENTS.csv

Measurements have the columns `station`, `day` and `temperature`.
"""

import sys

import gristmill as gm

Measurement = tuple[str, float, str]


def ordered(path: str) -> gm.Dataset[Measurement]:
    """Station, temperature and day. A tuple as the key is a second order within the first."""
    rows = gm.read_csv(path).map(lambda row: (row["station"], float(row["temperature"]), row["day"]))
    return rows.sort_by(lambda row: (row[0], -row[1], row[2]))


if __name__ == "__main__":
    for station, temperature, day in ordered(sys.argv[1]):
        print(station, temperature, day)
