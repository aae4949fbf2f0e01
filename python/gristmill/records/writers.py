"""Writers: records as a file of lines, CSV, JSON or Parquet, which appears when it is complete."""

from __future__ import annotations

import csv
import io
import json
import reprlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, TextIO

from ..base.errors import PlanError
from ..base.files.compression import of_name, packed
from ..base.files.paths import AnyPath, text_of
from ..base.files.whole_file import whole_file
from ..base.libraries import library
from ..base.printable import printable
from .runs import Run
from .tables import arrow, whole_columns


@contextmanager
def _text_file(path: AnyPath, errors: str) -> Iterator[TextIO]:
    """A file of UTF-8 that appears when it is complete, compressed if its name says so."""
    name = text_of(path)
    with whole_file(name) as file, io.TextIOWrapper(packed(file, name), "utf-8", errors, newline="") as text:
        yield text


def write_text(path: AnyPath, records: Callable[[], Iterable[Any]]) -> int:
    """Writes a line for each record; returns their number.

    Lone surrogates are written as the bytes that they stand for.
    """
    count, record = 0, None
    with _text_file(path, "surrogateescape") as file:
        try:
            for record in records():
                line = str(record)
                if "\n" in line or line.endswith("\r"):
                    raise PlanError(
                        f"write_text writes a line for each record, and record {count + 1} has line ends in it: {reprlib.repr(line)}. "
                        "write_jsonl keeps them"
                    )
                file.write(line + "\n")
                count += 1
        except UnicodeEncodeError as error:
            raise _no_text("write_text", count, record) from error
    return count


#: Half of a surrogate pair is written as an escape, which JSON has.
_HALVES = "backslashreplace"
_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def write_jsonl(path: AnyPath, records: Callable[[], Iterable[Any]]) -> int:
    """Writes a line of JSON for each record, which read_jsonl can read; returns their number."""
    count = 0
    with _text_file(path, _HALVES) as file:
        for record in records():
            count += 1
            try:
                line = _JSON.encode(record)
            except (TypeError, ValueError, RecursionError) as error:
                raise PlanError(_no_json(count, record, error)) from error
            file.write(line + "\n")
    return count


def _no_json(number: int, record: Any, error: Exception) -> str:
    if isinstance(error, RecursionError):
        why = "its values are nested too deeply"
    elif str(error).startswith("Out of range float values"):
        why = "JSON has no nan and no infinity. Map them to None or to text first"
    else:
        why = f"{error}. Map such values to text or numbers first"
    return f"write_jsonl cannot write record {number}, {reprlib.repr(record)}: {why}"


def _no_text(function: str, before: int, record: Any) -> PlanError:
    return PlanError(
        f"{function} cannot write record {before + 1}, {reprlib.repr(record)}: half of a surrogate pair is no character of UTF-8."
        " Replace it first, with text.encode('utf-8', 'replace').decode()"
    )


class _Lines:
    """Takes rows that end in CR LF, so that `csv` quotes both of these in a field, and ends them in LF."""

    def __init__(self, file: TextIO) -> None:
        self.file, self.count = file, 0

    def write(self, row: str) -> None:
        self.file.write(row[:-2] + "\n")
        self.count += 1


def write_csv(path: AnyPath, run: Callable[[], Run[Any]]) -> int:
    """Writes CSV with a header; returns the number of rows."""
    with _text_file(path, "surrogateescape") as file:
        made = run()
        records = list(made.records)
        table = whole_columns(records, made.pairs, "write_csv")
        lines = _Lines(file)
        rows = csv.writer(lines)
        try:
            rows.writerow(table)
            rows.writerows(zip(*table.values()))
        except UnicodeEncodeError as error:
            raise _no_text("write_csv", lines.count - 1, records[max(0, lines.count - 1)]) from error
    return len(records)


def write_parquet(path: AnyPath, run: Callable[[], Run[Any]]) -> int:
    """Writes a Parquet file; returns the number of rows."""
    write: Callable[[Any, BinaryIO], None] = library("pyarrow.parquet", "write_parquet").write_table
    name = text_of(path)
    if of_name(name) is not None:
        raise PlanError(
            f"{printable(name)}: a Parquet file is read in place, so it is not compressed as a whole. Leave out the last part of its name:"
            " Parquet packs its columns itself"
        )
    with whole_file(name) as file:
        table = arrow(run(), "write_parquet")
        write(table, file)
    return int(table.num_rows)
