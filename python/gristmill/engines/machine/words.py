"""Words of the engine, as a program in Python knows them."""

from __future__ import annotations

import re

from ...base.printable import printable


def in_words_of_python(text: str) -> str:
    """Returns a message of the engine with the settings of this package."""

    def setting(found: re.Match[str]) -> str:
        name = {"skip_bad_records": 'on_error="skip"', "spill_dirs": "spill_dir=..."}.get(found[1], f"{found[1]}=...")
        return f"gm.configure({name})"

    # Names of files may have characters that steer a terminal.
    text = printable(text).replace("the shared output ", "the shared array ")
    text = text.replace("Raise the limit with Job::record_bytes_max", "gm.read_files reads whole files, of any record length")
    text = text.replace("raise Job::record_bytes_max", "call csv.field_size_limit(...) with more before read_csv")
    text = re.sub(r"(Buffer|Combine|Isolation)::(\w+)", lambda found: f'{found[1]}="{found[2]}"'.lower(), text)
    text = text.replace("set Records::Lines", "read its lines with gm.read_text")
    text = re.sub(r"records of the program bytes (\d+)\.\.(\d+)", r"records \1 to \2 of the program", text)
    return re.sub(r"Job::(\w+)(?:\([^)]*\))?", setting, text)
