"""Datasets: the pipelines that a program writes. Nothing runs until it asks for a result."""

from __future__ import annotations

import builtins
import dataclasses
import html
import itertools
import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, TypeVar, overload

from .base import settings
from .base.errors import PlanError
from .engines import choice
from .exports import Exports
from .plan import nodes
from .plan.describe import describe
from .plan.orders import Order
from .plan.reducers import Reducer, reducer_of
from .plan.shared import SharedArray
from .plan.stages import sources, stage_of, without_fields
from .records.batches import Format, OnArrays, OnTables, Pluck
from .records.runs import Kept, Run
from .results import Result
from .running import Records, RunningJob

T = TypeVar("T")
U = TypeVar("U")
K = TypeVar("K")
V = TypeVar("V")
W = TypeVar("W")


class Dataset(Exports[T]):
    """Records, and the functions that they go through.

    :func:`gristmill.read_text` and other sources make datasets. A dataset is lazy: methods that return a dataset only add to the plan,
    and those that return something else run the job. A job ends with :class:`gristmill.JobError` if a function of the program fails,
    :class:`gristmill.WorkerDied` if a record kills its worker every time, :class:`gristmill.InputError` if an input cannot be read,
    :class:`gristmill.ResourceError` if memory, disk or time run out, and :class:`gristmill.PlanError` if a record does not fit its
    method, such as a record that is not a pair in :meth:`reduce_by_key`.

    A loop over a dataset gets each record as soon as it has been made. `close()` of an iterator that `iter` has made ends its job, from any
    thread.

    >>> import gristmill as gm
    >>> even = gm.range(6).filter(lambda n: n % 2 == 0)
    >>> even.map(lambda n: n * n).collect()
    [0, 4, 16]
    >>> even.count()
    3
    """

    def __init__(self, node: nodes.Node) -> None:
        self._node = node

    # Record by record.

    def map(self, function: Callable[[T], U]) -> Dataset[U]:
        """Replaces each record by `function(record)`.

        >>> import gristmill as gm
        >>> gm.range(3).map(lambda n: n * n).collect()
        [0, 1, 4]
        """
        return Dataset(nodes.Narrow(self._node, "map", function))

    def filter(self, function: Callable[[T], object]) -> Dataset[T]:
        """Keeps the records for which `function(record)` is true.

        >>> import gristmill as gm
        >>> gm.range(5).filter(lambda n: n % 2).collect()
        [1, 3]
        """
        return Dataset(nodes.Narrow(self._node, "filter", function))

    def flat_map(self, function: Callable[[T], Iterable[U]]) -> Dataset[U]:
        """Replaces each record by all the records that `function(record)` returns or yields.

        >>> import gristmill as gm
        >>> gm.from_iterable(["a b", "c"]).flat_map(str.split).collect()
        ['a', 'b', 'c']
        """
        return Dataset(nodes.Narrow(self._node, "flat_map", function))

    def map_batches(self, function: Callable[[Any], Any], format: Format = "list") -> Dataset[Any]:
        """Replaces each batch of records by the records that `function(batch)` returns or yields.

        The engine chooses the length of a batch, so the result must not depend on it. A batch is a list; with the format `arrow`
        it is a `pyarrow.Table`, and with `numpy` a dictionary of arrays, one for each column, with columns as in :meth:`Dataset.to_arrow`.
        The function may return a table, a data frame or a dictionary of arrays (each row becomes a dictionary), one array of records,
        or any iterable of records. Columns of Parquet files reach the function unchanged, and the columns that it returns go on to
        :meth:`pluck` and the shuffle: no Python object is made for a record. Arrays of NumPy have no missing numbers: if a batch
        lacks a number of a column, they are floats, with nan for it. Tables of Arrow keep them.

        Raises :class:`gristmill.PlanError` for another format.

        >>> import gristmill as gm
        >>> gm.range(4).map_batches(lambda numbers: [number + 1 for number in numbers]).collect()
        [1, 2, 3, 4]
        >>> gm.range(4).map_batches(lambda columns: columns["value"] ** 2, format="numpy").collect()
        [0, 1, 4, 9]
        """
        if format not in ("list", "arrow", "numpy"):
            raise PlanError(f"there is no format {format!r}; there are list, arrow and numpy")
        made = function if format == "list" else OnTables(function, format)
        return Dataset(nodes.Narrow(self._node, "map_batches", made))

    def pluck(self, *fields: Any) -> Dataset[Any]:
        """Replaces each record, a dictionary or a tuple, by some of its fields.

        One field gives its value, two give a pair of a key and a value, more give a tuple. A tuple of names in place of a name
        gives a tuple of their values. Fields of tuples are numbers, from 0. Raises :class:`gristmill.PlanError` without a field.

        >>> import gristmill as gm
        >>> sold = gm.from_iterable([{"shop": 1, "item": "tea", "price": 3}, {"shop": 2, "item": "tea", "price": 4}])
        >>> sold.pluck("item").collect()
        ['tea', 'tea']
        >>> sold.pluck("item", "price").reduce_by_key(gm.sum).collect()
        [('tea', 7)]
        >>> sold.pluck(("shop", "item"), "price").collect()
        [((1, 'tea'), 3), ((2, 'tea'), 4)]
        """
        if not fields or () in fields:
            raise PlanError("pluck() needs the name of a field")
        return Dataset(nodes.Narrow(self._node, "map", Pluck(*fields)))

    def uses(self, *arrays: SharedArray) -> Dataset[T]:
        """Lets functions write to shared arrays, see :func:`gristmill.shared_array`.

        The functions are those since the last shuffle.

        >>> import gristmill as gm
        >>> times = gm.shared_array(3, "int64")
        >>> def write(n):
        ...     times[n] = 10 * n
        ...     return n
        >>> gm.range(3).map(write).uses(times).count(), times[:].tolist()
        (3, [0, 10, 20])
        """
        return Dataset(nodes.Uses(self._node, arrays))

    def key_by(self, function: Callable[[T], K]) -> Dataset[tuple[K, T]]:
        """Replaces each record by the pair `(function(record), record)`.

        >>> import gristmill as gm
        >>> gm.from_iterable(["ab", "c"]).key_by(len).collect()
        [(2, 'ab'), (1, 'c')]
        """
        return self.map(lambda record: (function(record), record))

    # By key.

    @overload
    def reduce_by_key(self: Dataset[tuple[K, V]], reducer: Callable[[V, V], V], /) -> Dataset[tuple[K, V]]: ...
    @overload
    def reduce_by_key(self: Dataset[tuple[K, V]], /, *reducers: Reducer | tuple[Any, ...]) -> Dataset[tuple[K, Any]]: ...
    def reduce_by_key(self: Dataset[tuple[K, V]], /, *reducers: Any) -> Dataset[tuple[K, Any]]:
        """Combines the values of each key into one, by a reducer such as `gm.sum` or by a function of two values.

        Records are pairs of a key and a value. The function must be associative and commutative, because values are combined in any
        order. Several reducers, no functions, give a tuple of what each makes of the values. A tuple of reducers is for values that
        are tuples, with a reducer for each field. Raises :class:`gristmill.PlanError` for anything else.

        >>> import gristmill as gm
        >>> sales = gm.from_iterable([("tea", 3), ("salt", 1), ("tea", 4)])
        >>> sales.reduce_by_key(gm.sum).collect()
        [('salt', 1), ('tea', 7)]
        >>> sales.reduce_by_key(lambda a, b: a * b).to_dict()
        {'salt': 1, 'tea': 12}
        >>> sales.reduce_by_key(gm.count, gm.min, gm.max).collect()
        [('salt', (1, 1, 1)), ('tea', (2, 3, 4))]
        >>> boxes = gm.from_iterable([("tea", (3, 0.5)), ("tea", (4, 0.25))])
        >>> boxes.reduce_by_key((gm.sum, gm.mean), gm.count).collect()
        [('tea', ((7, 0.375), 2))]
        """
        if not reducers:
            raise PlanError("reduce_by_key() needs a reducer such as gm.sum, or a function of two values")
        return Dataset(nodes.Shuffle(self._node, "reduce", reducer=reducer_of(reducers)))

    def group_by_key(self: Dataset[tuple[K, V]]) -> Groups[K, V]:
        """Brings the values of each key together, for :meth:`Groups.map_groups`.

        Records are pairs of a key and a value.

        >>> import gristmill as gm
        >>> pairs = gm.from_iterable([("a", 1), ("b", 2), ("a", 3)])
        >>> pairs.group_by_key().map_groups(lambda key, values: [(key, sorted(values))]).collect()
        [('a', [1, 3]), ('b', [2])]
        """
        return Groups(self._node)

    def count_by_value(self) -> Dataset[tuple[T, int]]:
        """Counts equal records: gives pairs of a record and how often it occurs, in the order of the records.

        >>> import gristmill as gm
        >>> gm.from_iterable("abca").count_by_value().collect()
        [('a', 2), ('b', 1), ('c', 1)]
        """
        return Dataset(nodes.Shuffle(self._node, "count_by_value"))

    def distinct(self) -> Dataset[T]:
        """Drops repeated records. The others come in their order.

        >>> import gristmill as gm
        >>> gm.from_iterable([3, 1, 3]).distinct().collect()
        [1, 3]
        """
        return Dataset(nodes.Shuffle(self._node, "distinct"))

    def sort_by(self, function: Callable[[T], Any], *, descending: bool = False) -> Dataset[T]:
        """Sorts all records by `function(record)`, whose type must have an order in Python: numbers, text, tuples, ...

        NaN is the greatest number. Records with equal keys come in any order. A key without an order ends the job with a `TypeError`, and
        :func:`gristmill.register_key` gives one to a class of your own.

        >>> import gristmill as gm
        >>> gm.from_iterable(["pear", "fig"]).sort_by(len).collect()
        ['fig', 'pear']
        """
        return Dataset(nodes.Shuffle(self._node, "sort", function=function, descending=descending))

    def sort_by_key(self: Dataset[tuple[K, V]], *, descending: bool = False) -> Dataset[tuple[K, V]]:
        """Sorts pairs by their keys, as :meth:`sort_by` does.

        >>> import gristmill as gm
        >>> gm.from_iterable([(2, "b"), (1, "a")]).sort_by_key().collect()
        [(1, 'a'), (2, 'b')]
        """
        return Dataset(nodes.Shuffle(self._node, "sort", function=Order("key"), descending=descending))

    def join(self: Dataset[tuple[K, V]], other: Dataset[tuple[K, W]], how: nodes.JoinKind = "inner") -> Dataset[tuple[K, Any]]:
        """Joins two datasets of pairs by key.

        The records are `(key, (left value, right value))`, for each combination of values of a key.

        `how` decides about a key that only one side has. `inner` drops it; `left`, `right` and `full` keep it if it is on that side,
        or on any, with `None` for the missing value; `anti` gives only the pairs `(key, value)` of the left side whose key the right
        side lacks. Raises :class:`gristmill.PlanError` for another `how`.

        >>> import gristmill as gm
        >>> prices, sold = gm.from_iterable([("tea", 3), ("rice", 2)]), gm.from_iterable([("tea", 20), ("salt", 1)])
        >>> prices.join(sold).collect()
        [('tea', (3, 20))]
        >>> prices.join(sold, "full").collect()
        [('rice', (2, None)), ('salt', (None, 1)), ('tea', (3, 20))]
        """
        if how not in ("inner", "left", "right", "full", "anti"):
            raise PlanError(f"there is no {how!r} join; there are inner, left, right, full and anti")
        return Dataset(nodes.Join(self._node, other._node, how))

    def top(self, count: int, by: Literal["key", "value"] | Callable[[T], Any] | None = None) -> Dataset[T]:
        """Keeps the `count` greatest records, the greatest first.

        `by` is `"key"` or `"value"` for pairs, or a function of the record; without it, records are compared themselves. If records
        are equally great, the smaller ones come first. Raises :class:`gristmill.PlanError` if `count` is below 1.

        >>> import gristmill as gm
        >>> gm.from_iterable("abcab").count_by_value().top(2, by="value").collect()
        [('a', 2), ('b', 2)]
        """
        count = _count("top", count, 1)
        if not callable(by) and by not in (None, "key", "value"):
            raise PlanError(f'top(by={by!r}): it is "key", "value" or a function')
        order = by if callable(by) else Order(by or "record")
        return Dataset(nodes.Shuffle(self._node, "top", function=order, count=count))

    def cache(self) -> Dataset[T]:
        """Keeps the records in memory: the first job that needs them makes them, and later jobs read them.

        They take memory of the program, in addition to that of the workers.

        >>> import gristmill as gm
        >>> words = gm.from_iterable(["a b a"]).flat_map(str.split).cache()
        >>> words.count(), words.distinct().count()
        (3, 2)
        """
        return Dataset(nodes.Source("iterable", Kept(self._run), {"cached": True, "pairs": nodes.makes_pairs(self._node)}))

    # Results.

    def run(self) -> Result[T]:
        """Runs the job and returns a :class:`gristmill.Result`: the records, bad records, statistics, and timeline.

        >>> import gristmill as gm
        >>> with gm.configure(on_error="skip"):
        ...     result = gm.from_iterable(["1", "two"]).map(int).run()
        >>> list(result), result.bad_records[0].record
        ([1], 'two')
        """
        return _result(self._run(timeline=True))

    def start(self) -> RunningJob[T]:
        """Starts the job and returns a :class:`gristmill.RunningJob` at once.

        Its `result()` waits for the :class:`gristmill.Result`.

        The job has the settings of this moment, and shows no bar unless `progress=True`.

        >>> import gristmill as gm
        >>> job = gm.from_iterable("aba").count_by_value().start()
        >>> job.result().to_dict()
        {'a': 2, 'b': 1}
        """
        current = settings.current()
        chosen = dataclasses.replace(current, timeline=True, progress=current.progress or False)
        stage = stage_of(self._node)

        def run() -> Result[T]:
            settings.fix(chosen)
            return _result(choice.run(stage, chosen))

        return RunningJob(run, begins=chosen.engine == "machine")

    def collect(self) -> list[T]:
        """Runs the job and returns all records as a list.

        >>> import gristmill as gm
        >>> gm.range(3).collect()
        [0, 1, 2]
        """
        return builtins.list(self._run().records)

    def __iter__(self) -> Records[T]:
        """Runs the job and returns an iterator over its records. Each comes as soon as it has been made.

        The job begins with the first record, and ends when the iterator is closed or deleted. Behind a shuffle, records come when all
        of them have been made.

        Its `close()` ends the job, from any thread.

        >>> import gristmill as gm
        >>> next(iter(gm.range(3)))
        0
        """
        return Records(lambda: self._run(live=True))

    def count(self) -> int:
        """Runs the job and returns the number of records.

        >>> import gristmill as gm
        >>> gm.range(10).filter(lambda n: n > 6).count()
        3
        """
        counted: Dataset[Any] = Dataset(without_fields(self._node))
        run = counted._run()
        return run.count() if run.count is not None else builtins.sum(1 for _ in run.records)

    def take(self, count: int) -> list[T]:
        """Runs the job and returns the first `count` records. The job ends when it has them.

        Raises :class:`gristmill.PlanError` if `count` is not a whole number from 0. Nothing runs if it is 0.

        >>> import gristmill as gm
        >>> gm.range(10).take(2)
        [0, 1]
        """
        count = _count("take", count, 0)
        return builtins.list(itertools.islice(self, count)) if count else []

    def show(self, count: int = 20) -> None:
        """Runs the job and prints its first `count` records, one a line. Raises as :meth:`take` does.

        >>> import gristmill as gm
        >>> gm.range(3).show(2)
        0
        1
        """
        for record in self.take(_count("show", count, 0)):
            print(record)

    def explain(self) -> str:
        """Returns the plan as text, the last stage first. Nothing runs.

        >>> import gristmill as gm
        >>> print(gm.from_iterable(["a b"]).flat_map(str.split).count_by_value().top(3, by="value").explain())
        top 3 by value
          count_by_value
            flat_map str.split
            1 record
        """
        return "\n".join(describe(stage_of(self._node)))

    def __repr__(self) -> str:
        return f"<Dataset: {self.explain().splitlines()[0]}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.explain())}</pre>"

    if not TYPE_CHECKING:
        # Type checkers find these mistakes themselves.

        def __bool__(self) -> NoReturn:
            raise TypeError("a dataset is neither true nor false before its job runs: use `if dataset.take(1):` to see if there is a record")

        def __len__(self) -> NoReturn:
            raise TypeError("a dataset has no length before its job runs: use count(), or len(dataset.collect())")

        def __getitem__(self, index: object) -> NoReturn:
            raise TypeError(f"a dataset has no record [{index!r}]: use take(n) for the first records, or collect() for a list of all")

    def _run(self, timeline: bool = False, live: bool = False) -> Run[T]:
        stage = stage_of(self._node)
        run = choice.run(stage, dataclasses.replace(settings.current(), timeline=timeline, live=live))
        run.pairs = nodes.makes_pairs(self._node)
        run.kept = [source.data for source in sources(stage) if isinstance(source.data, Kept)]
        return run


class Groups(Generic[K, V]):
    """The values of each key. Made by :meth:`Dataset.group_by_key`.

    Besides :meth:`map_groups`, it has some methods of a dataset, for a look at the groups: as pairs of a key and a list of its values.

    >>> import gristmill as gm
    >>> groups = gm.from_iterable(["ant", "bee", "asp"]).key_by(lambda word: word[0]).group_by_key()
    >>> groups.map_groups(lambda letter, words: [f"{letter}: {len(words)}"]).collect()
    ['a: 2', 'b: 1']
    >>> groups.count(), [(letter, sorted(words)) for letter, words in groups]
    (2, [('a', ['ant', 'asp']), ('b', ['bee'])])
    """

    def __init__(self, node: nodes.Node) -> None:
        self._node = node

    def map_groups(self, function: Callable[[K, Any], Iterable[U]], format: Literal["list", "numpy"] = "list") -> Dataset[U]:
        """Replaces each group by the records that `function(key, values)` returns or yields, in the order of the keys.

        The values are a list in any order; with the format `numpy` they are a one-dimensional array. The values of one key must fit
        in the memory of a worker. Raises :class:`gristmill.PlanError` for another format. The job ends with a
        :class:`gristmill.JobError` if the function returns a tuple, a dictionary, text or nothing: one record must be in a list, or
        be yielded.

        >>> import gristmill as gm
        >>> visits = gm.from_iterable([("ann", 3), ("bob", 5), ("ann", 1)])
        >>> visits.group_by_key().map_groups(lambda user, times: [(user, min(times), len(times))]).collect()
        [('ann', 1, 2), ('bob', 5, 1)]
        >>> visits.group_by_key().map_groups(lambda user, times: [(user, float(times.mean()))], format="numpy").collect()
        [('ann', 2.0), ('bob', 5.0)]
        """
        if format not in ("list", "numpy"):
            raise PlanError(f"there is no format {format!r}; there are list and numpy")
        made = function if format == "list" else OnArrays(function)
        return Dataset(nodes.Shuffle(self._node, "groups", function=made))

    def collect(self) -> list[tuple[K, list[V]]]:
        """Runs the job and returns all groups: pairs of a key and a list of its values, in the order of the keys.

        >>> import gristmill as gm
        >>> gm.from_iterable([("b", 1), ("a", 2)]).group_by_key().collect()
        [('a', [2]), ('b', [1])]
        """
        return self._pairs().collect()

    def take(self, count: int) -> list[tuple[K, list[V]]]:
        """Runs the job and returns the first `count` groups. Raises as :meth:`Dataset.take` does.

        >>> import gristmill as gm
        >>> gm.from_iterable([("b", 1), ("a", 2)]).group_by_key().take(1)
        [('a', [2])]
        """
        return self._pairs().take(count)

    def count(self) -> int:
        """Runs the job and returns the number of keys.

        >>> import gristmill as gm
        >>> gm.from_iterable([("b", 1), ("a", 2), ("b", 3)]).group_by_key().count()
        2
        """
        return self._pairs().count()

    def show(self, count: int = 20) -> None:
        """Runs the job and prints its first `count` groups, one a line. Raises as :meth:`Dataset.take` does.

        >>> import gristmill as gm
        >>> gm.from_iterable([("b", 1), ("a", 2)]).group_by_key().show()
        ('a', [2])
        ('b', [1])
        """
        self._pairs().show(count)

    def to_dict(self) -> dict[K, list[V]]:
        """Runs the job and returns a dictionary of the keys and lists of their values.

        >>> import gristmill as gm
        >>> gm.from_iterable([("b", 1), ("a", 2)]).group_by_key().to_dict()
        {'a': [2], 'b': [1]}
        """
        return self._pairs().to_dict()

    def explain(self) -> str:
        """Returns the plan as text, the last stage first. Nothing runs.

        >>> import gristmill as gm
        >>> print(gm.range(6).key_by(lambda n: n % 2).group_by_key().explain())
        group_by_key
          map Dataset.key_by.<locals>.<lambda>
          range(0, 6)
        """
        return "\n".join(["group_by_key", *self._pairs().explain().splitlines()[1:]])

    def __iter__(self) -> Iterator[tuple[K, list[V]]]:
        return iter(self._pairs())

    def __repr__(self) -> str:
        return "<Groups: map_groups(function) makes records of them, and collect() returns them>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.explain())}</pre>"

    if not TYPE_CHECKING:

        def __bool__(self) -> NoReturn:
            raise TypeError("groups are neither true nor false before their job runs: use `if groups.take(1):` to see if there is one")

        def __len__(self) -> NoReturn:
            raise TypeError("groups have no length before their job runs: use count()")

        def __getitem__(self, index: object) -> NoReturn:
            raise TypeError(f"groups have no item [{index!r}]: use to_dict() for a dictionary of all")

        def __getattr__(self, name: str) -> NoReturn:
            if not name.startswith("_") and hasattr(Dataset, name):
                raise AttributeError(f"groups have no {name}(): first make records of them, with map_groups(function)")
            raise AttributeError(f"'Groups' object has no attribute {name!r}")

    def _pairs(self) -> Dataset[tuple[K, list[V]]]:
        return self.map_groups(_key_and_values)


def _result(run: Run[T]) -> Result[T]:
    return Result(builtins.list(run.records), run.all_bad_records(), run.stats, run.timelines, run.pairs)


def _count(method: str, count: Any, least: int) -> int:
    """A whole number that a method was given; an error if it is none, or too small."""
    try:
        found = operator.index(count)
    except TypeError:
        found = least - 1
    if isinstance(count, bool) or not least <= found <= sys.maxsize:
        raise PlanError(f"{method}({count!r}): give a whole number from {least} to {sys.maxsize}")
    return found


def _key_and_values(key: K, values: list[V]) -> list[tuple[K, list[V]]]:
    return [(key, values)]
