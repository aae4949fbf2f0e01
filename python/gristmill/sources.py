"""Sources: datasets of files and of records that the program makes."""

from __future__ import annotations

import builtins
import glob
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from .dataset import Dataset
from .errors import InputError
from .formats import check_errors
from .plan import Source, SourceKind

T = TypeVar("T")

#: A file, a folder (all files in it and below, but hidden ones), a pattern such as `logs/*.gz`, or several of these.
Paths = str | Path | Sequence[str | Path]


def read_text(paths: Paths, *, errors: str = "strict") -> Dataset[str]:
    """Reads the lines of text files in UTF-8, without their line ends. Files whose names end in `.gz` are unpacked.

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
    """Reads the lines of files as bytes, without their line ends. Raises :class:`gristmill.InputError` if there is no such file.

    >>> import gristmill as gm, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "a"
    >>> _ = file.write_bytes(b"one\\n\\xff")
    >>> gm.read_bytes(file).collect()
    [b'one', b'\\xff']
    """
    return _files("bytes", paths)


def read_files(paths: Paths) -> Dataset[tuple[str, bytes]]:
    """Reads whole files: each is a pair of its path and its content in bytes.

    A file must fit in the memory of a worker. Raises :class:`gristmill.InputError` if there is no such file.

    >>> import gristmill as gm, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "a"
    >>> _ = file.write_bytes(b"one")
    >>> gm.read_files(file).map(lambda pair: len(pair[1])).collect()
    [3]
    """
    return _files("files", paths)


def read_csv(paths: Paths, *, delimiter: str = ",") -> Dataset[dict[str, str]]:
    """Reads the rows of CSV files with a header as dictionaries of text.

    A row with more or fewer fields than the header is a bad record: it ends the job with :class:`gristmill.InputError`, or is set
    aside if `on_error` is `skip`. Raises :class:`gristmill.InputError` at once if there is no such file.

    >>> import gristmill as gm, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = file.write_text("name,age\\nann,31\\n")
    >>> gm.read_csv(file).collect()
    [{'name': 'ann', 'age': '31'}]
    """
    return _files("csv", paths, delimiter=delimiter)


def read_jsonl(paths: Paths) -> Dataset[Any]:
    """Reads files with one JSON value in each line.

    A line that is not JSON is a bad record: it ends the job with :class:`gristmill.InputError`, or is set aside if `on_error` is
    `skip`. Raises :class:`gristmill.InputError` at once if there is no such file.

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
    without making a dictionary of each row. Raises :class:`gristmill.InputError` if there is no such file.

    >>> import gristmill as gm, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "a.parquet"
    >>> _ = gm.from_iterable([{"name": "ann", "age": 31}]).write_parquet(file)
    >>> gm.read_parquet(file, columns=["age"]).collect()
    [{'age': 31}]
    """
    return _files("parquet", paths, columns=None if columns is None else list(columns))


def word_count(paths: Paths) -> Dataset[tuple[str, int]]:
    """Counts the words of text files, as `str.split` finds them, in native code only.

    It is short for `read_text(paths).flat_map(str.split).count_by_value()`, which is as fast. Raises :class:`gristmill.InputError` if
    there is no such file.

    >>> import gristmill as gm, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "a"
    >>> _ = file.write_text("a rose is a rose")
    >>> gm.word_count(file).to_dict()
    {'a': 2, 'is': 1, 'rose': 2}
    """
    return read_text(paths).flat_map(str.split).count_by_value()


def from_iterable(records: Iterable[T]) -> Dataset[T]:
    """Makes a dataset of the items of an iterable, which is read once, at this call. They lie in the memory of the program.

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


def _files(kind: SourceKind, paths: Paths, **options: Any) -> Dataset[Any]:
    return Dataset(Source(kind, files(paths), options))


def files(paths: Paths) -> list[str]:
    """The files that paths stand for, in order."""
    each = [paths] if isinstance(paths, (str, Path)) else paths
    return [file for path in each for file in _expanded(str(path))]


def _expanded(path: str) -> list[str]:
    """The files that a path stands for, in order."""
    if Path(path).is_dir():
        below = ((file, file.relative_to(path)) for file in Path(path).rglob("*") if file.is_file())
        files = sorted(str(file) for file, parts in below if not any(part.startswith(".") for part in parts.parts))
    elif glob.has_magic(path) and not Path(path).exists():
        files = sorted(file for file in glob.glob(path, recursive=True) if Path(file).is_file())
    else:
        files = [path] if Path(path).exists() else []
    if not files:
        raise InputError(f"there is no file {path}")
    return files
