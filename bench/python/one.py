"""Runs one task with one program, in a process of its own, and prints JSON: seconds, and a digest of the answer.

    one.py PROGRAM TASK TEXT ROWS...

The time is that of the job: from the call of the function to the answer as objects of Python. Imports do not count.
"""

import importlib
import json
import sys
import time
from typing import Any


def digest(answer: Any) -> list[float]:
    """Returns the number of results and their sum, which must be equal; of strings, the sum of their lengths."""
    values = list(answer.values()) if isinstance(answer, dict) else answer
    values = [len(value) if isinstance(value, str) else value for value in values]
    return [len(values), round(sum(values), 3)]


def main() -> None:
    program, task, text, *rows = sys.argv[1:]
    module = importlib.import_module(f"by_{program}")
    if task in ("groups", "large", "totals"):
        # What reads the rows, for those that would import it within the job.
        import numpy  # noqa: F401
        import pyarrow.dataset
        import pyarrow.parquet  # noqa: F401
    # `pairs` is what the task's function in tasks.py is called.
    function = getattr(module, {"pairs": "pairs_", "second": "start"}.get(task, task))
    if task == "second":
        function(text, rows)
    begin = time.perf_counter()
    answer = function(text, rows)
    seconds = time.perf_counter() - begin
    print(json.dumps({"seconds": seconds, "answer": digest(answer)}))


if __name__ == "__main__":
    main()
