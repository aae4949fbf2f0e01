"""The command line that the word-count peers share, and how they print."""

import argparse


def parse():
    args = argparse.ArgumentParser()
    args.add_argument("file")
    args.add_argument("--tokens", choices=["alpha", "space"], default="alpha")
    args.add_argument("--threads", type=int, default=2)
    args.add_argument("--top", type=int, default=10)
    return args.parse_args()


def show(rows):
    for word, count in rows:
        print(f"{word}\t{count}")
