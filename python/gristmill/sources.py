"""Sources: datasets of files and of records that the program makes."""

from __future__ import annotations

import builtins
import csv
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeVar

from .base.errors import InputError, PlanError
from .base.files.paths import Paths, found, is_regular
from .base.printable import printable
from .dataset import Dataset
from .engines.formats import check_columns, check_errors
from .plan.nodes import Source, SourceKind

T = TypeVar("T")


def read_text(paths: Paths, *, errors: str = "strict") -> Dataset[str]:
    """Reads the lines of text files in UTF-8, without their line ends. Compressed files are unpacked.

    `errors` decides about bytes that are not UTF-8, as in `bytes.decode`: `strict` ends the job with
    :class:`gristmill.InputError`, `replace`, `ignore` and `surrogateescape` continue. Raises :class:`gristmill.InputError` at once if
    there is no such file.

    >>> import gristmill as gm, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("one\\ntwo\\n")
    >>> gm.read_text(folder / "*.txt").collect()
    ['one', 'two']
    """
    check_errors(errors)
    return _files("text", paths, errors=errors)


def read_bytes(paths: Paths) -> Dataset[bytes]:
    """Reads the lines of files as bytes, without their line ends. Compressed files are unpacked.

    Raises :class:`gristmill.InputError` if there is no such file.

    >>> import gristmill as gm, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "a"
    >>> _ = file.write_bytes(b"one\\n\\xff")
    >>> gm.read_bytes(file).collect()
    [b'one', b'\\xff']
    """
    return _files("bytes", paths)


def read_files(paths: Paths) -> Dataset[tuple[str, bytes]]:
    """Reads whole files: each is a pair of its path and its content in bytes. Compressed files are unpacked.

    A file must fit in the memory of a worker. Raises :class:`gristmill.InputError` if there is no such file.

    >>> import gristmill as gm, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "a"
    >>> _ = file.write_bytes(b"one")
    >>> gm.read_files(file).map(lambda pair: len(pair[1])).collect()
    [3]
    """
    return _files("files", paths)


def read_csv(
    paths: Paths,
    *,
    delimiter: str = ",",
    errors: str = "strict",
    duplicate_names: Literal["number"] | None = None,
) -> Dataset[dict[str, str]]:
    """Reads the rows of CSV files with a header as dictionaries of text.

    Workers share a large file. :meth:`Dataset.pluck` right after this makes no dictionary of a row.

    A row with more or fewer fields than the header is a bad record: it ends the job with :class:`gristmill.InputError`, or is set
    aside if `on_error` is `skip`. One empty field more may stand at the end of a row. Empty lines are skipped. A quote that is not
    closed, text behind a closing quote, and two columns of one name end the job with :class:`gristmill.InputError`;
    `duplicate_names="number"` names such columns `a`, `a_2`, `a_3`. A field may have as many characters as
    `csv.field_size_limit()` says when this is called. A row has the line in which it begins, and a byte order mark before the header
    belongs to no name. `errors` decides about bytes that are not UTF-8, as in :func:`read_text`.

    Raises :class:`gristmill.InputError` at once if there is no such file, and :class:`gristmill.PlanError` for options that make
    no sense.

    >>> import gristmill as gm, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = file.write_text("name,age\\nann,31\\n")
    >>> gm.read_csv(file).collect()
    [{'name': 'ann', 'age': '31'}]
    """
    check_errors(errors)
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n':
        raise PlanError(f"delimiter={delimiter!r}: it is one character, and neither a quote nor a line end")
    if duplicate_names not in (None, "number"):
        raise PlanError(f'duplicate_names={duplicate_names!r}: it is "number", or None: then two columns of one name are an error')
    most = csv.field_size_limit()
    options = {"delimiter": delimiter, "errors": errors, "duplicate_names": duplicate_names, "field_characters_max": most}
    return _files("csv", paths, **options)


def read_jsonl(paths: Paths) -> Dataset[Any]:
    """Reads files with one JSON value in each line.

    A line that is not JSON is a bad record: it ends the job with :class:`gristmill.InputError`, or is set aside if `on_error` is
    `skip`. So are NaN and Infinity, which JSON does not have, whole numbers of more than 4300 digits, and values that are nested deeper
    than 500. If a name occurs twice in an object, the last value counts. Empty lines are skipped. Raises
    :class:`gristmill.InputError` at once if there is no such file.

    >>> import gristmill as gm, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "a.jsonl"
    >>> _ = file.write_text('{"n": 1}\\n[2]\\n')
    >>> gm.read_jsonl(file).collect()
    [{'n': 1}, [2]]
    """
    return _files("jsonl", paths)


def read_parquet(paths: Paths, *, columns: Sequence[str] | None = None) -> Dataset[dict[str, Any]]:
    """Reads the rows of Parquet files as dictionaries. Needs pyarrow.

    `columns` names the columns to read; without it all are read. :meth:`Dataset.pluck` and :meth:`Dataset.map_batches` take columns
    without making a dictionary of each row, and `pluck` right after this reads no other columns. Values in the names of folders, such as
    `country=de`, are no columns. Raises :class:`gristmill.InputError` at once if there is no such file, or if a file lacks one of the
    columns, and :class:`gristmill.PlanError` if a column is named twice. A value that Python cannot have, such as a date after the year
    9999, ends a job that makes an object of it.

    >>> import gristmill as gm, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "a.parquet"
    >>> _ = gm.from_iterable([{"name": "ann", "age": 31}]).write_parquet(file)
    >>> gm.read_parquet(file, columns=["age"]).collect()
    [{'age': 31}]
    """
    if columns is None:
        return _files("parquet", paths)
    if isinstance(columns, (str, bytes)):
        raise PlanError(f"columns={columns!r}: give a list of names")
    named = list(columns)
    if twice := [name for name in named if named.count(name) > 1]:
        raise PlanError(f"columns={named!r}: {twice[0]!r} is there twice")
    return _files("parquet", paths, columns=named)


def from_iterable(records: Iterable[T]) -> Dataset[T]:
    """Makes a dataset of the items of an iterable, which is read once, at this call.

    They lie in the memory of the program.

    >>> import gristmill as gm
    >>> gm.from_iterable(n * n for n in range(3)).collect()
    [0, 1, 4]
    """
    return Dataset(Source("iterable", list(records)))


def range(start: int, stop: int | None = None, step: int = 1) -> Dataset[int]:
    """Makes a dataset of whole numbers, as the `range` of Python does.

    >>> import gristmill as gm
    >>> gm.range(2, 8, 3).collect()
    [2, 5]
    """
    return Dataset(Source("range", builtins.range(start) if stop is None else builtins.range(start, stop, step)))


#: Sources that Python reads, more than once if something fails.
_READ_AGAIN = ("files", "csv", "parquet")


def _files(kind: SourceKind, paths: Paths, **options: Any) -> Dataset[Any]:
    files = found(paths)
    for path in files if kind in _READ_AGAIN else ():
        if not is_regular(path):
            raise InputError(
                f"cannot read {printable(path)}: it is a FIFO or socket, which can be read only once, and read_{kind} may read it again."
                " Copy it to a file"
            )
    if options.get("columns") is not None:
        check_columns(files, options["columns"])
    return Dataset(Source(kind, files, options))
