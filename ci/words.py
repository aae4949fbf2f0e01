#!/usr/bin/env python3
"""Checks that comments open with a plain sentence and fit on a screen, in Rust, Java, Python and shell.

    ci/words.py [FILE...]              fails with one line for each that does not
    python3 -B -m doctest ci/words.py  tests this check, without a word if it passes

1. A comment names its thing first, so none begins with "Of" or "So many", and no documentation with "What", "Who" or "For who".
   Within code, a sentence such as "What has ended does not run again" may stand.
2. A line of a comment ends before column 121, unless it is indented or between ``` as a drawing is.
3. A closure is called what it gives; `of`, `told` and `made` say nothing.
4. A word of the glossary in ARCHITECTURE.md names at most one type in each language.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = 120
#: Patterns by ending: a line of a comment (what the comment says is the last group), and the start of one.
RUST_OR_JAVA = re.compile(r"\s*(///?|//!|/\*\*?|\*(?!/))(?:\s+(.*))?$")
COMMENT = {
    "rs": RUST_OR_JAVA,
    "java": RUST_OR_JAVA,
    "py": re.compile(r"""\s*(#:?|r?\"{3})\s*(.*)$"""),
    "sh": re.compile(r"\s*(#)\s+(.*)$"),
}
OPENING = re.compile(r"(Of|So many|What|Who|For who)\b")
#: Comments within code, which may begin with the last three.
REMARKS = {"//", "#"}
#: The definition of a type that other files can name.
TYPE = {
    "rs": re.compile(r"^(?:pub(?:\([a-z ]+\))? )?(?:unsafe )?(?:struct|enum|trait|type) (\w+)", re.M),
    "java": re.compile(r"^\s*(?:(?:public|private|protected|static|final|sealed|abstract) )*(?:class|record|enum|interface) (\w+)", re.M),
    "py": re.compile(r"^class (\w+)", re.M),
}
CLOSURE = {
    "rs": re.compile(r"\blet (?:mut )?(of|told|made) = (?:move )?\|"),
    "py": re.compile(r"^\s+def (of|told|made)\((?!self|cls)|^\s*(of|told|made) = lambda\b"),
}


def faults(lines, kind):
    """Yields the number of each line with a fault, and the fault.

    >>> list(faults(["/// Of a frog.", "/// What it eats is not an opening.", "fn eat() {}", "// What it eats."], "rs"))
    [(1, 'begins with "Of"')]
    >>> list(faults(["  /** What it eats. */", "  // " + 60 * "x ", '  String s = "// What";'], "java"))
    [(1, 'begins with "What"'), (2, 'has 125 columns, 120 at most')]
    >>> list(faults(['    \"\"\"So many frogs.\"\"\"', "#: Who eats.", "    def of(frog):", "    of = lambda frog: frog"], "py"))
    [(1, 'begins with "So many"'), (2, 'begins with "Who"'), (3, 'names a closure "of"'), (4, 'names a closure "of"')]
    >>> list(faults(["//!     " + 60 * "x ", "/// ```text", "/// " + 60 * "x ", "/// ```", "/// " + 60 * "x "], "rs"))
    [(5, 'has 124 columns, 120 at most')]
    >>> list(faults(["let of = |frog| frog;", "let of = frogs;"], "rs"))
    [(1, 'names a closure "of"')]
    """
    marker, drawn = "", False
    for number, line in enumerate(lines, 1):
        found = COMMENT[kind].match(line)
        before, marker = marker, found.group(1) if found else ""
        text = found.group(2) or "" if found else ""
        goes_on = marker and (marker == before or (marker == "*" and before.startswith("/*")))
        begins = text and (not goes_on or '"""' in marker)
        opening = OPENING.match(text) if begins else None
        if opening and (marker not in REMARKS or opening.group() in ("Of", "So many")):
            yield number, f'begins with "{opening.group()}"'
        drawn = bool(found) and drawn != text.startswith("```")
        indented = found and line[found.end(1) :].startswith("   ")
        if found and len(line) > COLUMNS and " " in text and not drawn and not indented:
            yield number, f"has {len(line)} columns, {COLUMNS} at most"
        if kind in CLOSURE and (closure := CLOSURE[kind].search(line)):
            yield number, f'names a closure "{closure.group(1) or closure.group(2)}"'


def words_of(architecture):
    """Returns the words of the glossary, as types are called.

    >>> sorted(words_of("## Glossary\\n\\n| term | meaning |\\n|---|---|\\n| page, OS page | a unit |\\n"))
    ['OsPage', 'Page']
    """
    rows = re.findall(r"^\| ([^|]+) \|", architecture.partition("## Glossary")[2], re.M)[1:]
    return {"".join(part.capitalize() for part in term.split()) for row in rows for term in row.split(",")}


def doubles(files, words):
    """Yields each word that names several types of a language, with their files. A file is a name and a text.

    >>> files = [("a.rs", "pub struct Page;"), ("b.rs", "enum Page {}\\nmod c { struct Page; }"), ("c.py", "class Page:"), ("d.rs", "struct Rung;")]
    >>> list(doubles(files, {"Page", "Rung"}))
    [('Page', ['a.rs', 'b.rs'])]
    """
    found = {}
    for name, text in files:
        kind = name.rpartition(".")[2]
        for word in TYPE[kind].findall(text) if kind in TYPE else ():
            found.setdefault((word, kind), []).append(name)
    for (word, _), names in sorted(found.items()):
        if word in words and len(names) > 1:
            yield word, names


def product(name):
    """Tells whether a file belongs to the product, or is a test or a measurement."""
    return name.startswith(("crates/", "python/gristmill/", "spark/src/")) and "/src/test/" not in name and "/tests" not in name


def main():
    names = (
        sys.argv[1:]
        or subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.splitlines()
    )
    count = 0
    for name in names:
        kind = name.rpartition(".")[2]
        if kind in COMMENT and (ROOT / name).is_file():
            for number, fault in faults((ROOT / name).read_text().splitlines(), kind):
                count += 1
                print(f"{name}:{number}: {fault}", file=sys.stderr)
    files = [(name, (ROOT / name).read_text()) for name in names if product(name) and name.rpartition(".")[2] in TYPE and (ROOT / name).is_file()]
    for word, places in doubles(files, words_of((ROOT / "ARCHITECTURE.md").read_text())):
        count += 1
        print(f"{word}, a word of the glossary, names types in {', '.join(places)}", file=sys.stderr)
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    main()
