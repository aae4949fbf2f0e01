"""Ready applications: the command's own, called from Python and as fast as there."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from .base import cancel, options, settings
from .base.errors import GristmillError, JobError, PlanError
from .base.files.paths import AnyPath, Paths, found, text_of
from .base.settings import Settings
from .dataset import Dataset
from .plan.nodes import Source
from .records.runs import BadRecord, Kept, Run

#: With `on_error="skip"`, a job sets aside up to so many records.
_BAD_RECORDS_MAX = 1_000_000


def group_by(
    paths: Paths, by: str, sum: str | None = None, *, input_format: str | None = None, delimiter: str | None = None
) -> Dataset[tuple[Any, Any]]:
    """Counts the rows of CSV files or JSON lines by key, or adds up one of their numbers.

    The records are pairs of a key and the count or sum.

    `by` and `sum` are columns of CSV, by name or by number from 1, or fields of JSON. Keys are text; a key that is not UTF-8
    is bytes. Sums of whole numbers are exact. A row without the number is skipped, and a key without any number has the
    sum `None`. `input_format` is `"csv"` or `"jsonl"`; without it, the names and the content of the files decide.

    Raises :class:`gristmill.InputError` if there is no such file, and, when it runs, :class:`gristmill.JobError` with the message of
    the command.

    >>> import gristmill as gm, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "sales.csv"
    >>> _ = file.write_text("product,price\\ntea,3\\nrice,2\\ntea,4\\n")
    >>> gm.group_by(file, "product", sum="price").collect()
    [('rice', 2), ('tea', 7)]
    >>> gm.group_by(file, "product").to_dict()
    {'rice': 1, 'tea': 2}
    """
    arguments = ["group-by", "--by", by, "--format", "jsonl"]
    for option, value in (("--sum", sum), ("--input-format", input_format), ("--delimiter", delimiter)):
        arguments += [] if value is None else [option, value]
    given = found(paths)

    def make() -> Run[tuple[Any, Any]]:
        output = tempfile.TemporaryFile()
        with tempfile.TemporaryDirectory() as folder:
            bad = Path(folder) / "bad.jsonl"
            chosen = settings.current()
            listing = ["--bad-records", str(bad)] if chosen.on_error == "skip" else []
            said = _run([*arguments, *listing], given, chosen, output)
            _tell(said.replace(f"{bad} says which and why", "bad_records of the result says which and why"))
            bad_records = list(_bad_records(bad))
        output.seek(0)
        return Run(_pairs(output, "count" if sum is None else "sum"), bad_records, stats={"engine": "command"})

    return Dataset(Source("iterable", Kept(make), {"cached": True, "pairs": True}))


def sort_files(paths: Paths, output: AnyPath, *, key_bytes: tuple[int, int] | None = None) -> None:
    """Sorts the lines of files byte by byte into one file, which appears when it is complete.

    The lines need not fit in memory.

    `key_bytes` sorts by these bytes of a line, from the first up to but without the second; lines that agree in them are
    ordered by all of their bytes. The output is compressed if its name ends in `.gz`, `.zst`, `.bz2` or `.xz`. Raises
    :class:`gristmill.InputError` if there is no such file, and :class:`gristmill.JobError` with the message of the command.

    >>> import gristmill as gm, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("pear\\nfig\\n")
    >>> gm.sort_files(folder / "a.txt", folder / "sorted.txt")
    >>> (folder / "sorted.txt").read_text()
    'fig\\npear\\n'
    """
    arguments = ["sort", "--output", text_of(output)]
    if key_bytes is not None:
        arguments += ["--key-bytes", f"{key_bytes[0]}..{key_bytes[1]}"]
    _tell(_run(arguments, found(paths), settings.current(), subprocess.DEVNULL))


def _pairs(output: IO[bytes], value: str) -> Iterator[tuple[Any, Any]]:
    with output:
        for line in output:
            row = json.loads(line)
            key = row["key"] if "key" in row else base64.b64decode(row["key_base64"])
            yield key, row.get(value)


def _bad_records(path: Path) -> Iterator[BadRecord]:
    """The records that the command has set aside, as it lists them."""
    if path.exists():
        for line in path.read_bytes().splitlines():
            row = json.loads(line)
            record = row["record"].encode() if "record" in row else base64.b64decode(row.get("record_base64", ""))
            file = row["file"] if "file" in row else os.fsdecode(base64.b64decode(row["file_base64"]))
            yield BadRecord(record, row["cause"], file, row.get("line"), row.get("offset"))


def _run(arguments: list[str], paths: Iterable[str], chosen: Settings, output: IO[bytes] | int) -> str:
    """Runs the command on files. Returns its messages; that of a failure becomes an exception."""
    if chosen.engine not in ("machine", "local"):
        raise PlanError(f"gristmill {arguments[0]} runs on this machine, not on Spark; read_csv, read_text and what follows them do")
    with tempfile.TemporaryFile() as names:
        names.write(b"".join(os.fsencode(path) + b"\0" for path in paths))
        names.seek(0)
        command = [_command(), *arguments, *_options(chosen), "--files-from", "-"]
        token = cancel.current()
        with subprocess.Popen(command, stdin=names, stdout=output, stderr=subprocess.PIPE) as ran, token.on_cancel(ran.kill):
            try:
                _, stderr = ran.communicate()
            except BaseException:
                ran.kill()
                raise
    token.check()
    said = stderr.decode(errors="replace").strip()
    if ran.returncode == 0:
        return said
    message = said or f"gristmill {arguments[0]} ended with status {ran.returncode}"
    raise PlanError(message) if ran.returncode == 2 else JobError(message)


def _tell(said: str) -> None:
    if said:
        print(said, file=sys.stderr)


def _options(chosen: Settings) -> Iterator[str]:
    """The settings as options of the command."""
    yield from (f"--{name}={value}" for name, value in settings.shared_options(chosen))
    if chosen.on_error == "skip":
        yield f"--skip-bad-records={_BAD_RECORDS_MAX}"
    if (deadline := chosen.deadline_seconds()) is not None:
        yield f"--deadline={options.duration(deadline)}"
    for name, value in chosen.others.items():
        option = name.replace("_", "-")
        if not isinstance(value, bool):
            yield f"--{option}={options.text(name, value)}"
        elif str(value) != options.ENGINE[name][0].default:
            yield f"--{option}" if value else f"--no-{option}"


def _command() -> str:
    """Where the command of this package is."""
    import importlib.metadata  # takes a third of the time of `import gristmill`, if that does it

    # A source tree is not installed.
    with suppress(importlib.metadata.PackageNotFoundError):
        for file in importlib.metadata.files("gristmill") or ():
            if file.name == "gristmill" and file.parent.name == "bin":
                return str(file.locate())
    if found := shutil.which("gristmill"):
        return found
    raise GristmillError("the command gristmill, which comes with this package, is not installed: install the package again")
