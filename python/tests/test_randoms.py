"""A generator in a closure gave every worker the same numbers, though the guide calls random numbers safe."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gristmill as gm

pytestmark = pytest.mark.parametrize("engine", ["machine"], indirect=True)

MODULE_GENERATOR = random.Random(1)


class Holds:
    def __init__(self) -> None:
        self.inner = {"generator": random.Random(2)}

    def draw(self, n: int) -> float:
        return self.inner["generator"].random()


class Called(Holds):
    def __call__(self, n: int) -> float:
        return self.draw(n)


def of_module(n: int) -> float:
    return MODULE_GENERATOR.random()


def through_another(n: int) -> float:
    return of_module(n)


def closure(generator: Any) -> Callable[[int], float]:
    return lambda n: float(generator.random())


def by_default(n: int, generator: random.Random = random.Random(3)) -> float:
    return generator.random()


FUNCTIONS: dict[str, Callable[[int], float]] = {
    "random": lambda n: random.random(),
    "numpy.random": lambda n: float(np.random.rand()),
    "Random in a closure": closure(random.Random(0)),
    "default_rng in a closure": closure(np.random.default_rng(0)),
    "RandomState in a closure": closure(np.random.RandomState(0)),
    "Philox in a closure": closure(np.random.Generator(np.random.Philox(0))),
    "a method of a generator": lambda n, draw=random.Random(4).random: draw(),
    "a global variable": of_module,
    "a function that calls one": through_another,
    "an object": Holds().draw,
    "a callable object": Called(),
    "a default": by_default,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_two_workers_draw_the_same_numbers(name: str) -> None:
    with gm.configure(workers=4):
        found = gm.range(4000).map(FUNCTIONS[name]).collect()
        assert len(set(found)) == 4000
        # Nor do two jobs.
        assert set(found).isdisjoint(gm.range(4000).map(FUNCTIONS[name]).collect())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_seed_makes_all_numbers_the_same_for_any_number_of_workers(name: str, tmp_path: Path) -> None:
    draw = FUNCTIONS[name]
    text = tmp_path / "text"
    text.write_text("".join(f"{n} line of text\n" for n in range(30_000)))
    found: list[list[Any]] = []
    for workers in (1, 2, 5):
        with gm.configure(workers=workers, seed=42):
            found.append(
                [
                    gm.range(3000).map(draw).collect(),
                    gm.from_iterable([1, 1, 2] * 500).map(draw).collect(),
                    gm.from_iterable([1, 1, 2] * 500).map(draw).map(lambda n: (n, 1)).reduce_by_key(gm.sum).collect(),
                    gm.read_text(text).map(len).map(draw).collect(),
                    gm.range(300).map(lambda n: (n % 50, n)).group_by_key().map_groups(lambda key, values: [(key, draw(key))]).collect(),
                    gm.range(300).map(lambda n: (n, n)).reduce_by_key(gm.sum).map(lambda pair: (pair, draw(pair[0]))).collect(),
                    gm.range(300).map(lambda n: n % 9).distinct().filter(lambda n: draw(n) < 0.5).sort_by(lambda n: n).collect(),
                ]
            )
    assert found[0] == found[1] == found[2]
    assert len(set(found[0][0])) == 3000 and len({number for _, number in found[0][4]}) == 50
    with gm.configure(seed=43):
        assert set(gm.range(3000).map(draw).collect()).isdisjoint(found[0][0])


def test_with_a_seed_work_that_is_done_again_draws_the_same_numbers(tmp_path: Path) -> None:
    """A worker that dies half-way may have given some of its records away."""
    marker, drawn, generator = tmp_path / "died", tmp_path / "drawn", np.random.default_rng(0)

    def dies(n: int) -> float:
        number = float(generator.random())
        with drawn.open("a") as file:
            file.write(f"{n} {number}\n")
        if n == 50 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    with gm.configure(workers=2, seed=5):
        gm.range(100).map(dies).collect()
    lines = drawn.read_text().splitlines()
    again = {line for line in lines if lines.count(line) > 1}
    assert len({line.split()[0] for line in lines}) == len(set(lines)) == 100 and again


def test_groups_draw_different_numbers() -> None:
    """Workers that only reduce had never been seeded, and drew the same numbers."""
    with gm.configure(workers=4):
        groups = gm.range(4000).map(lambda n: (n, n)).group_by_key()
        assert len(set(groups.map_groups(lambda key, values: [random.random()]).collect())) == 4000


def test_a_seed_holds_from_program_to_program_and_with_threads(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(
        "import sys, threading, time, numpy as np, gristmill as gm\n"
        "if len(sys.argv) > 1: threading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n"
        "gm.configure(seed=1)\nrng = np.random.default_rng()\n"
        "print(gm.range(9).map(lambda n: rng.random()).collect())\n"
        "print(gm.range(9).map(lambda n: (str(n), n)).group_by_key().map_groups(lambda k, v: [(k, rng.random())]).collect())\n"
    )
    ways = ["", "threads", "threads"]
    ran = [subprocess.run([sys.executable, tmp_path / "job.py", *way.split()], capture_output=True, text=True, check=True) for way in ways]
    assert ran[0].stdout == ran[1].stdout == ran[2].stdout != ""


@pytest.mark.parametrize("seed", [1.5, "a", True])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(ValueError, match="give a whole number"):
        gm.configure(seed=seed)
