"""Orders of records that need no function of the program: by the record, or by the key or the value of a pair."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import Any, Literal

from ..base.errors import PairsNeeded


def is_pair(record: Any) -> bool:
    """Whether a record is a key and a value."""
    return isinstance(record, (tuple, list)) and len(record) == 2


@dataclass(frozen=True)
class Order:
    """Takes the key by which a record is ordered out of it.

    >>> Order("value")(("a", 1)), Order("record")("a")
    (1, 'a')
    """

    by: Literal["record", "key", "value"]

    def __call__(self, record: Any) -> Any:
        if self.by == "record":
            return record
        if not is_pair(record):
            raise PairsNeeded(f"the order by key or value needs pairs of a key and a value, and this record is {reprlib.repr(record)}")
        return record[0] if self.by == "key" else record[1]

    def __str__(self) -> str:
        return "itself" if self.by == "record" else self.by
