"""Exports: records as a dictionary, a table, a data frame, or a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .base.files.paths import AnyPath
from .records import tables, writers
from .records.runs import Run

if TYPE_CHECKING:
    import pandas
    import pyarrow

T_co = TypeVar("T_co", covariant=True)
K = TypeVar("K")
V = TypeVar("V")


class Exports(Generic[T_co]):
    """The methods that :class:`gristmill.Dataset`, which runs a job for each, and :class:`gristmill.Result` share."""

    def _run(self) -> Run[T_co]:
        """The records, once."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[T_co]:
        return self._run().records

    def to_dict(self: Exports[tuple[K, V]]) -> dict[K, V]:
        """Returns the pairs as a dictionary. If a key occurs twice, the last value counts.

        >>> import gristmill as gm
        >>> gm.from_iterable("aba").count_by_value().to_dict()
        {'a': 2, 'b': 1}
        """
        return self._run().to_dict()

    def to_arrow(self) -> pyarrow.Table:
        """Returns a table of Arrow. Needs pyarrow.

        Dictionaries give a column for each name, pairs the columns `key` and `value`, and other records the column `value`. If there are no
        records, there are columns `key` and `value` where a reducer, :meth:`Dataset.count_by_value` or a join makes them. Tuples become lists,
        or structures with the fields `0`, `1` and so on if their items are of several types, as those of several reducers often are.
        Raises :class:`gristmill.PlanError` for values of a column that have no type together.

        >>> import gristmill as gm
        >>> gm.from_iterable("aba").count_by_value().to_arrow().column_names
        ['key', 'value']
        """
        return tables.arrow(self._run(), "to_arrow")

    def to_pandas(self) -> pandas.DataFrame:
        """Returns a data frame of pandas, with columns as in :meth:`Dataset.to_arrow`. Needs pandas.

        Tuples stay tuples. Whole numbers that floats would round are objects if the column has floats or `None`, too.

        >>> import gristmill as gm
        >>> gm.from_iterable("aba").count_by_value().to_pandas()["value"].sum()
        np.int64(3)
        """
        return tables.pandas_frame(self._run())

    def to_polars(self) -> Any:
        """Returns a data frame of Polars, with columns as in :meth:`Dataset.to_arrow`. Needs Polars.

        Raises :class:`gristmill.PlanError` for values of a column that have no type together.

        >>> import gristmill as gm
        >>> gm.from_iterable("aba").count_by_value().to_polars().rows()
        [('a', 2), ('b', 1)]
        """
        return tables.polars_frame(self._run())

    def write_text(self, path: AnyPath) -> int:
        """Writes a line of UTF-8 for each record and returns their number.

        The file appears when it is complete, and is compressed if its name ends in `.gz`, `.zst`, `.bz2` or `.xz`, as with the other
        methods that write. Raises `OSError` before the job runs if the file cannot be written, and :class:`gristmill.PlanError` for
        text with a line end in it, and for text that UTF-8 cannot hold.

        >>> import gristmill as gm, tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "numbers"
        >>> gm.range(3).write_text(file), file.read_text()
        (3, '0\\n1\\n2\\n')
        """
        return writers.write_text(path, lambda: self)

    def write_jsonl(self, path: AnyPath) -> int:
        """Writes each record as a line of JSON and returns their number. Pairs become arrays.

        Raises `OSError` before the job runs if the file cannot be written, and :class:`gristmill.PlanError` for a record that JSON cannot
        hold, such as one with `nan`.

        >>> import gristmill as gm, tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "counts"
        >>> gm.from_iterable("a").count_by_value().write_jsonl(file), file.read_text()
        (1, '["a", 1]\\n')
        """
        return writers.write_jsonl(path, lambda: self)

    def write_csv(self, path: AnyPath) -> int:
        """Writes CSV with a header and returns the number of records. Columns are as in :meth:`Dataset.to_arrow`.

        `None` becomes an empty field, and other values their text. Raises `OSError` before the job runs if the file cannot be written, and
        :class:`gristmill.PlanError` for text that UTF-8 cannot hold.

        >>> import gristmill as gm, tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "counts"
        >>> gm.from_iterable("a").count_by_value().write_csv(file), file.read_text()
        (1, 'key,value\\na,1\\n')
        """
        return writers.write_csv(path, self._run)

    def write_parquet(self, path: AnyPath) -> int:
        """Writes a Parquet file and returns the number of records.

        Columns are as in :meth:`Dataset.to_arrow`. Needs pyarrow.

        Raises `OSError` before the job runs if the file cannot be written, and :class:`gristmill.PlanError` if its name asks for
        compression: Parquet packs its columns itself.

        >>> import gristmill as gm, tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "counts"
        >>> gm.from_iterable("a").count_by_value().write_parquet(file)
        1
        """
        return writers.write_parquet(path, self._run)
