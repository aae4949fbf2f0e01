"""Every engine gives the answer of plain Python, for drawn programs, and keys and values of every common type.

`GRISTMILL_PROGRAMS=10000 pytest python/tests/test_oracle.py` runs so many programs, other ones each time. A program that fails is printed
so that it can be pasted: `PYTHONPATH=python:python/tests python -c 'from test_oracle import *; check(Program(...))'`.
"""

import os
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
from difference import difference
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from oracle import Open, Program
from recipes import *

import gristmill as gm

COUNT = int(os.environ.get("GRISTMILL_PROGRAMS", 150))

# Programs.

ERRORS = [None, None, None, None, None, StopIteration, ValueError, KeyError]
REDUCERS = ["sum", "sum", "min", "max", "mean", "count", "list", "first", ("top", 1), ("top", 2), added(), never(StopIteration)]
REDUCERS += [("several", "sum", "max"), ("several", "count", "mean", "min"), ("several", "sum", ("top", 1))]


def reducer(named: Any) -> Any:
    return gm.top(named[1]) if isinstance(named, tuple) else getattr(gm, named) if isinstance(named, str) else named


@st.composite
def programs(draw: Any, pools: st.SearchStrategy[Any] = pools) -> Program:
    keys, values = draw(pools), draw(st.sampled_from([st.sampled_from(ONES + NUMBERS)] * 2) | pools)
    are_pairs = draw(st.booleans())
    records = lambda pairs: st.lists(st.tuples(keys, values) if pairs else keys, max_size=draw(st.sampled_from([1, 4, 12])))
    source, steps = draw(records(are_pairs)) * draw(st.sampled_from([1, 1, 1, 30])), []
    for _ in range(draw(st.integers(1, 5))):
        # A function looks for a record that there is, so that some fail.
        bad = (draw(st.sampled_from(source) if source else keys), draw(st.sampled_from(ERRORS)))
        one = [("map", unless(*bad)), ("map", paired(draw(values))), ("map", negated()), ("map", constant(draw(keys))), ("cache",)]
        one += [("filter", is_other(draw(keys), *bad)), ("flat_map", times(draw(st.integers(0, 2)), *bad))]
        one += [("flat_map", yielded(draw(st.integers(1, 3)), *bad)), ("map_batches", each(*bad)), ("map_batches", each_yielded(*bad))]
        one += [("key_by", unless(*bad)), ("sort_by", unless(*bad), draw(st.booleans())), ("distinct",), ("count_by_value",), ("top", 2, None)]
        count, (key, error) = draw(st.integers(1, 4)), bad
        key = key[0] if isinstance(key, tuple) and key else key
        two = [("map", swapped()), ("pluck", draw(st.sampled_from([0, 1]))), ("pluck", 1, 0), ("pluck", (0, 1), 1), ("key_by", item(1))]
        two += [("reduce_by_key", draw(st.sampled_from(REDUCERS)))] * 4 + [("sort_by_key", draw(st.booleans())), ("sort_by", item(1), False)]
        two += [("map_groups", sizes(key, error)), ("map_groups", spread(key, error))]
        two += [("top", count, draw(st.sampled_from(["key", "value", item(1)]))), ("join", draw(records(True)), draw(st.sampled_from(KINDS)))]
        step = draw(st.sampled_from(one + two * 2 if are_pairs else one))
        steps.append(step)
        are_pairs = (are_pairs and not re.search("pluck|constant|negated", repr(step))) or bool(re.search(PAIRS, repr(step)))
    ends = [("collect",)] * 4 + [("count",), ("take", draw(st.integers(0, 4)))] + [("to_dict",)] * are_pairs
    end = draw(st.sampled_from(ends))
    return Program(source, steps, end, end == ("collect",) and draw(st.booleans()))


PAIRS = r"^\('(key_by|count_by_value|join|reduce_by_key|map_groups)|paired|\b1, 0\)"
KINDS = ["inner", "left", "right", "full", "anti"]


def dataset_of(program: Program) -> Any:
    plain = lambda argument: argument.closure if isinstance(argument, Function) else argument
    data: Any = gm.from_iterable(program.source)
    for name, *arguments in program.steps:
        first, *others = map(plain, arguments or [None])
        if name == "map_groups":
            data = data.group_by_key().map_groups(first)
        elif name == "join":
            data = data.join(gm.from_iterable(first), *others)
        elif name == "reduce_by_key":
            several = isinstance(first, tuple) and first[0] == "several"
            data = data.reduce_by_key(*map(reducer, first[1:] if several else [first]))
        elif name in ("sort_by", "sort_by_key"):
            data = getattr(data, name)(*[first][: name == "sort_by"], descending=arguments[-1])
        else:
            data = getattr(data, name)(*map(plain, arguments))
    return data


def check(program: Program) -> None:
    """Runs a program on the engine that is set, and fails if the answer is not that of plain Python."""
    error, found, bad = None, None, None
    try:
        with gm.configure(on_error="skip" if program.skip else "raise", deadline=60), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = dataset_of(program)
            if program.end == ("collect",):
                result = data.run()
                found, bad = list(result), result.bad_records
            else:
                found = getattr(data, program.end[0])(*program.end[1:])
    except Exception as raised:
        error = raised
    told = difference(program, found, error, bad)
    assert not told, f"{program!r}\n  gives {told}"


@contextmanager
def another_thread() -> Iterator[None]:
    """A second thread: then a starter, and not the program, forks the workers."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


# The oracle itself, against answers written by hand.

HANDS: list[tuple[Program, Any]] = [
    (Program([1, 2, 3], [("map", negated()), ("filter", is_other(-2, None, None))]), [-1, -3]),
    (Program([1, 2], [("flat_map", yielded(2, None, None)), ("map_batches", each(None, None))]), [1, 1, 2, 2]),
    (Program([(1, "a"), (1.0, "b"), (2, "c")], [("reduce_by_key", "count")]), [(True, 2), (2, 1)]),
    (Program([(nan, 1), (-nan, 2)], [("reduce_by_key", "sum")]), [(nan, 3)]),
    (Program([(1, np.int64(2**62))] * 4, [("reduce_by_key", "sum")]), [(1, 2**64)]),
    (Program([(1, Decimal("0.5")), (1, Fraction(1, 3)), (1, 1)], [("reduce_by_key", "min")]), [(1, Fraction(1, 3))]),
    (Program([(1, 3), (1, np.float64(2)), (1, nan)], [("reduce_by_key", ("top", 2))]), [(1, [nan, 3])]),
    (Program([(1, "b"), (1, "a")], [("reduce_by_key", "list"), ("pluck", 1)]), [["a", "b"]]),
    (Program([(1, "b"), (1, "a"), (2, "c")], [("reduce_by_key", "first")], ("take", 1)), [(1, "a")]),
    (Program([(1, 2), (3, 4)], [("pluck", (0, 1), 1), ("map", swapped())]), [(2, (1, 2)), (4, (3, 4))]),
    (Program([("b", 2), (None, 1), (b"", 3), (0.5, 4)], [("sort_by_key", False)]), [(None, 1), (0.5, 4), ("b", 2), (b"", 3)]),
    (Program([Level.HIGH, 1, nan, 0.5], [("sort_by", unless(None, None), True)]), [nan, Level.HIGH, 1, 0.5]),
    (Program([("a", 1), ("b", 3), ("c", 3)], [("top", 2, "value")]), [("b", 3), ("c", 3)]),
    (Program([Point(1, 2), (1, 2), [1], [1.0], Decimal("1.00"), 1], [("count_by_value",)]), [((1, 2), 2), ([1], 2), (1, 2)]),
    (Program([(1, 2), (3, 4)], [("join", [(True, 5)], "inner")]), [(1, (2, 5))]),
    (Program([(1, 2), (3, 4)], [("join", [(1, 5)], "left")]), [(1, (2, 5)), (3, (4, None))]),
    (Program([(3, 4)], [("join", [(1, 5)], "full")]), [(1, (None, 5)), (3, (4, None))]),
    (Program([(1, 2), (3, 4)], [("join", [(1, 5)], "anti")]), [(3, 4)]),
    (Program([], [("join", [(1, 5)], "right"), ("cache",)]), [(1, (None, 5))]),
    (Program([("a", 1), ("a", 2)], [], ("to_dict",)), {"a": 2}),
    (Program([("a", 1), ("a", 2)], [("map_groups", sizes(None, None))], ("count",)), 1),
    (Program([], [("distinct",)]), []),
]


@pytest.mark.parametrize("program, answer", HANDS, ids=map(str, range(len(HANDS))))
def test_the_oracle_agrees_with_answers_written_by_hand(program: Program, answer: Any) -> None:
    assert difference(program, answer) is None
    check_all_differ(program, answer)


def check_all_differ(program: Program, answer: Any) -> None:
    """An answer with one record more, fewer, or in the place of another is a wrong one."""
    wrong = [answer + 1] if isinstance(answer, int) else [answer | {"z": 1}] if isinstance(answer, dict) else [[*answer, "z"]]
    wrong += [["z", *answer[1:]], answer[1:]] if isinstance(answer, list) and answer else []
    assert all(difference(program, each) for each in wrong)


def test_the_oracle_tells_orders_and_types_and_errors_apart() -> None:
    assert difference(Program([1, 2], [("distinct",)]), [2, 1])
    assert difference(Program([1], [("map", unless(None, None))]), [True])
    assert not difference(Program([1], [("distinct",)]), [True])
    assert difference(Program([1, 2], [("map", unless(1, StopIteration))]), [2])
    failed = gm.JobError("refused", record=1)
    failed.__cause__ = StopIteration()
    assert not difference(Program([1, 2], [("map", unless(1, StopIteration))]), None, failed)
    assert difference(Program([1, 2], [("map", unless(2, StopIteration))]), None, failed), "it names the record"
    assert difference(Program([1, 2], [("map", unless(1, KeyError))]), None, failed), "its cause is what was raised"
    assert difference(Program([1], []), None, failed)
    bad = gm.BadRecord(1, "StopIteration: ")
    assert not difference(Program([1, 2], [("flat_map", yielded(2, 1, KeyError))], skip=True), [2, 2], bad=[gm.BadRecord(1, "KeyError: 'refused'")])
    assert not difference(Program([1, 2], [("map", unless(1, StopIteration))], skip=True), [2], bad=[bad])
    assert difference(Program([1, 2], [("map", unless(1, StopIteration))], skip=True), [2], bad=[])
    with pytest.raises(Open):
        difference(Program([[1], [2]], [("sort_by", unless(None, None), False)]), [[1], [2]])


@given(program=programs())
@settings(max_examples=50, deadline=None, derandomize=True, database=None)
def test_a_program_can_be_pasted(program: Program) -> None:
    assert repr(eval(repr(program))) == repr(program)


def tries(parts: int) -> settings:
    phases = [Phase.explicit, Phase.generate, Phase.shrink]
    return settings(
        max_examples=max(1, COUNT // parts), deadline=None, derandomize="GRISTMILL_PROGRAMS" not in os.environ, database=None, phases=phases,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )  # fmt: skip


@pytest.mark.parametrize("threads", [False, True], ids=["alone", "threads"])
@tries(4)
@given(program=programs())
def test_programs_give_the_answer_of_plain_python(program: Program, threads: bool) -> None:
    with another_thread() if threads else nullcontext():
        try:
            check(program)
        except Open:
            assume(False)
