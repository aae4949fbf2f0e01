#!/usr/bin/env python3
"""Checks that the files and names that documents and comments mention exist in this repository.

    ci/names.py                        fails with one line for each that does not
    python3 -B -m doctest ci/names.py  tests this check, without a word if it passes

1. A path that begins with one of the repository's folders, as ci/names.py, is there, seen from the root or from the page. It may also be one
   that git ignores, because it is made later. Capitals in it, as in bench/sets/NAME.toml, stand for a name.
2. A file in backticks, as `job/mod.rs`, is the end of the path of a file.
3. A name in backticks of several words, as `tests_have_such_names` or `thoseInJavaToo`, is a word in some program, outside its comments. One that
   ends in `...` is the beginning of such a word.

CHANGELOG.md and the results in bench/runs are history, in which old names are right.
"""

import re
import subprocess
import sys
from bisect import bisect_left
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HISTORY = ("CHANGELOG.md", "bench/runs/")
PROGRAMS = {".rs", ".java", ".py", ".sh", ".toml", ".yml"}
#: Names of the kernel, of clippy and of PySpark that documents mention and no program here uses.
FOREIGN = {"applyInPandas", "copy_file_range", "incompatible_msrv", "protected_fifos", "protected_regular"}
PATH = re.compile(r"(?<![\w/.~-])(?:\.\./)*((?:bench|ci|crates|docs|fuzz|python|spark)/[\w./-]*\w)")
FILE = re.compile(r"`([\w./-]+\.(?:rs|java|py|sh|md|toml))`")
NAME = re.compile(r"`([a-z0-9]+(?:_[a-z0-9]+|[A-Z][a-z0-9]+)+)(\.\.\.)?`")
CAPITALS = re.compile(r"\b[A-Z]{3,}\b")


class Tree:
    """The files of the repository, and the words of its programs."""

    def __init__(self, files, words):
        self.paths = {str(path) for file in files for path in [Path(file), *Path(file).parents]}
        self.ends = {"/".join(Path(file).parts[at:]) for file in files for at in range(len(Path(file).parts))}
        self.words = sorted(words)

    def has_word(self, name, is_cut):
        """Returns whether a program has this word, or one that begins with it."""
        at = bisect_left(self.words, name)
        found = self.words[at] if at < len(self.words) else ""
        return found.startswith(name) if is_cut else found == name

    def missing(self, text, folder):
        """Yields what a text in a folder mentions that is not there.

        >>> tree = Tree(["ci/names.py", "crates/engine/src/job/mod.rs"], {"frogs_are_counted_once"})
        >>> list(tree.missing("ci/names.py, crates/engine, `job/mod.rs`, ci/NAME.sh, `frogs_are_counted_once`, `frogs_are...`", "docs"))
        []
        >>> list(tree.missing("see ci/gone.py, ../../ci/gone/mod.rs, `job/old.rs`, but not https://a.org/docs/b", "docs"))
        ['ci/gone.py', 'ci/gone/mod.rs', 'job/old.rs']
        >>> list(tree.missing("`frogs_are_counted_twice`, `toads_are...`, `copy_file_range`", "docs"))
        ['frogs_are_counted_twice', 'toads_are...']
        """
        for path in PATH.findall(text):
            if not {path, f"{folder}/{path}"} & self.paths and not CAPITALS.search(path):
                yield path
        for file in FILE.findall(text):
            if file not in self.ends and not PATH.match(file) and not CAPITALS.search(file):
                yield file
        for name, cut in NAME.findall(text):
            if name not in FOREIGN and not self.has_word(name, cut):
                yield name + cut


def parted(name, text):
    """Returns the comments of a program, and its text without them.

    >>> parted("a.rs", "x(); // y")
    ('// y', 'x(); ')
    """
    marks = r"//.*|^ */\*(?:.|\n)*?\*/" if name.endswith((".rs", ".java")) else r'(?<!\S)#.*|^ *"""(?:.|\n)*?"""'
    return "\n".join(re.findall(marks, text, re.M)), re.sub(marks, "", text, flags=re.M)


def git(*words, **more):
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, **more).stdout.splitlines()


def main():
    files = [name for name in git("ls-files", "--cached", "--others", "--exclude-standard") if (ROOT / name).exists()]
    texts, words = {}, set()
    for name in files:
        suffix = Path(name).suffix
        if name.startswith(HISTORY) or (suffix != ".md" and suffix not in PROGRAMS):
            continue
        text = (ROOT / name).read_text()
        if suffix != ".md":
            text, program = parted(name, text)
            words.update(re.findall(r"\w+", program))
        texts[name] = text
    # The examples above are wrong on purpose.
    del texts["ci/names.py"]
    tree = Tree(files, words)
    found = [
        (name, what, {what, f"{Path(name).parent}/{what}"}) for name, text in texts.items() for what in tree.missing(text, str(Path(name).parent))
    ]
    made_later = set(git("check-ignore", "--stdin", input="\n".join(path for *_, paths in found for path in paths)))
    wrong = [f"{name}: {what} is not there" for name, what, paths in found if not paths & made_later]
    print("\n".join(wrong) or f"the files and names that {len(texts)} files mention are there")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
