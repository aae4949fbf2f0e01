"""Histogram of a BMP, or a line through byte pairs, as a user of numpy writes them.

Prints what the programs by hand print.
"""

import struct
import sys

import numpy as np

what, file = sys.argv[1:]
data = np.memmap(file, np.uint8, "r")
# A block at a time: numpy widens what it counts and multiplies.
BLOCK = 3 << 20

if what == "histogram":
    (start,), (columns, rows) = struct.unpack("<I", data[10:14]), struct.unpack("<ii", data[18:26])
    pixels = data[start : start + 3 * columns * abs(rows)]
    counts = np.zeros((3, 256), np.int64)
    for at in range(0, len(pixels), BLOCK):
        block = pixels[at : at + BLOCK]
        for channel in range(3):
            counts[channel] += np.bincount(block[channel::3], minlength=256)
    for name, channel in zip(("blue", "green", "red"), counts):
        for value, count in enumerate(channel):
            print(f"{name}\t{value}\t{count}")
else:
    n = len(data) // 2
    sums = np.zeros(5)  # x, y, xx, yy, xy: whole numbers, exact below 2**53
    for at in range(0, 2 * n, BLOCK * 2):
        block = data[at : at + BLOCK * 2].astype(np.float64)
        x, y = block[0::2], block[1::2]
        sums += x.sum(), y.sum(), x @ x, y @ y, x @ y
    x, y, xx, yy, xy = sums
    slope = (n * xy - x * y) / (n * xx - x * x)
    r = (n * xy - x * y) / np.sqrt((n * xx - x * x) * (n * yy - y * y))
    print(f"n\t{n}\nslope\t{slope:.6f}\nintercept\t{(y - slope * x) / n:.6f}\nr\t{r:.6f}")
