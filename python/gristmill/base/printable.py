"""Names of files in messages, without characters that steer a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Escapes line ends, escape sequences and invisible characters, as `repr` does.

    A name of a file may have any of them, and would otherwise end the line of a message, or move the cursor.

    >>> printable("a\x1b[2J\n.txt")
    'a\\x1b[2J\\n.txt'
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in "\u00a0\u3000" else _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    # A byte of a name that is not UTF-8 is half of a surrogate pair in Python.
    return f"\\x{ord(letter) - 0xDC00:02x}" if "\udc80" <= letter <= "\udcff" else repr(letter)[1:-1]
