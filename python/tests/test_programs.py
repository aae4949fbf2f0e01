"""Each program of python/examples gives what a few lines of plain Python give."""

import csv
import json
import random
import runpy
import sys
from collections import Counter, defaultdict
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(autouse=True)
def on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)


def example(name: str) -> Any:
    """An example, as a module."""
    return import_module(name)


def write_csv(path: Path, *rows: tuple[object, ...]) -> str:
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(rows)
    return str(path)


@pytest.fixture
def chance() -> random.Random:
    return random.Random(23)


def test_words_are_counted(tmp_path: Path, chance: random.Random) -> None:
    text = "".join(chance.choices("aab  \n", k=500))
    (tmp_path / "text").write_text(text)
    assert example("word_count").words([str(tmp_path / "text")]).to_dict() == Counter(text.split())


def test_money_is_added_up_by_city(tmp_path: Path, chance: random.Random) -> None:
    cities = {"ann": "Rome", "bob": "Oslo", "eve": "Rome"}
    orders = [(chance.choice(["ann", "bob", "eve", "guest"]), chance.randrange(1000)) for _ in range(200)]
    expected: Counter[str] = Counter()
    for customer, cents in orders:
        expected[cities.get(customer, "?")] += cents
    found = example("join").spent(
        write_csv(tmp_path / "orders.csv", ("customer", "cents"), *orders),
        write_csv(tmp_path / "customers.csv", ("customer", "city"), *cities.items()),
    )
    assert found.to_dict() == expected


def test_a_long_pause_ends_a_session(tmp_path: Path, chance: random.Random) -> None:
    visits = [{"user": chance.choice("ab"), "time": chance.randrange(60_000)} for _ in range(60)]
    visits += [{"user": "c", "time": time} for time in (0, 1800, 3601)]  # Half an hour is no pause; a second more is one.
    (tmp_path / "visits").write_text("\n".join(map(json.dumps, visits)))
    expected: list[list[Any]] = []
    for user, time in sorted((visit["user"], visit["time"]) for visit in visits):
        if expected and expected[-1][0] == user and time - expected[-1][2] <= 1800:
            expected[-1][2:] = time, expected[-1][3] + 1
        else:
            expected.append([user, time, time, 1])
    found = example("sessions").sessions(str(tmp_path / "visits")).collect()
    assert found == [tuple(session) for session in expected]
    assert found[-2:] == [("c", 0, 1800, 2), ("c", 3601, 3601, 1)]


def test_the_best_of_each_player_are_found(tmp_path: Path, chance: random.Random) -> None:
    results = [(chance.choice("abc"), chance.randrange(50), f"game {n}") for n in range(100)]
    players = defaultdict(list)
    for player, points, game in results:
        players[player].append((points, game))
    found = example("top_per_group").best(write_csv(tmp_path / "results.csv", ("player", "points", "game"), *results))
    assert found.to_dict() == {player: sorted(every, reverse=True)[:3] for player, every in players.items()}


def test_measurements_are_ordered_within_their_station(tmp_path: Path, chance: random.Random) -> None:
    rows = [(chance.choice("xyz"), chance.randrange(-90, 90) / 4, f"day {n}") for n in range(100)]
    file = write_csv(tmp_path / "rows.csv", ("station", "temperature", "day"), *rows)
    assert example("secondary_sort").ordered(file).collect() == sorted(rows, key=lambda row: (row[0], -row[1], row[2]))


def test_a_user_counts_once_a_day(tmp_path: Path, chance: random.Random) -> None:
    visits = [(f"2026-11-{chance.randrange(1, 5):02}", chance.choice(["ann", "bob", "eve"])) for _ in range(30)]
    (tmp_path / "log").write_text("".join(f"{day}T08:15:00 {user} /index\n" for day, user in visits))
    assert example("distinct_users").users([str(tmp_path / "log")]).to_dict() == Counter(day for day, _ in set(visits))


def test_ranks_of_pages_are_those_of_the_power_method(tmp_path: Path, chance: random.Random, engine: str) -> None:
    steps = 4 if engine == "spark" else 20
    links = {(chance.choice("abcde"), chance.choice("abcde")) for _ in range(15)} | set(zip("abcde", "bcdea"))
    ranks = dict.fromkeys("abcde", 0.2)
    for _ in range(steps):
        given = Counter[str]()
        for page, to in links:
            given[to] += ranks[page] / sum(other == page for other, _ in links)
        ranks = {page: 0.03 + 0.85 * given[page] for page in "abcde"}
    file = write_csv(tmp_path / "links.csv", ("page", "to"), *links, *links)
    assert example("page_rank").page_rank(file, steps).to_dict() == pytest.approx(ranks)


def test_points_around_three_centres_are_three_clusters(tmp_path: Path, chance: random.Random) -> None:
    centres = [(0.0, 0.0), (9.0, 0.0), (0.0, 9.0)]
    points = [(x + chance.uniform(-1, 1), y + chance.uniform(-1, 1)) for _ in range(50) for x, y in centres]
    found = example("k_means").k_means(write_csv(tmp_path / "points.csv", ("x", "y"), *points), 3)
    for number, centre in enumerate(found):
        assert list(centre) == pytest.approx([sum(axis) / 50 for axis in zip(*points[number::3])])


@pytest.mark.parametrize("program", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_every_example_is_tested(program: str) -> None:
    assert f'example("{program}")' in Path(__file__).read_text()


def test_an_example_is_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("b a b")
    monkeypatch.setattr(sys, "argv", ["word_count.py", str(tmp_path / "text")])
    runpy.run_path(str(EXAMPLES / "word_count.py"), run_name="__main__")
    assert capsys.readouterr().out == "2 b\n1 a\n"
