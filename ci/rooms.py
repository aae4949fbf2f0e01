#!/usr/bin/env python3
"""Checks that imports run one way: in every list of `mod` lines, a module imports only from those above it.

    ci/rooms.py            fails with one line for each import that climbs
    ci/rooms.py --list     prints the rooms in their order, each with the first line of its documentation

The list in lib.rs, main.rs or mod.rs alone defines the order. A file with modules below it comes after them: it may use them,
but they may not use its definitions. Tests are not checked.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Module:
    def __init__(self, name, file, parent):
        self.name, self.file, self.parent = name, file, parent
        self.text = stripped(file.read_text())
        self.modules = {}
        self.reexports = {}  # name -> path of modules, relative to this one
        folder = file.parent if file.stem in ("lib", "main", "mod") else file.with_suffix("")
        for attributes, child in re.findall(r"^((?:#\[[^\n]*\]\s*)*)(?:pub(?:\([^)]*\))? )?mod (\w+);", self.text, re.M):
            if "path" in attributes or "cfg(test)" in attributes or "cfg(all(test" in attributes:
                continue
            for candidate in (folder / f"{child}.rs", folder / child / "mod.rs"):
                if candidate.exists():
                    self.modules[child] = Module(child, candidate, self)
        for prefix, item in paths(self.text, r"pub(?:\([^)]*\))? use "):
            if prefix and prefix[0] in self.modules:
                self.reexports[item] = prefix

    def path(self):
        return [*self.parent.path(), self.name] if self.parent else []

    def top(self):
        return self.parent.top() if self.parent else self


def stripped(text):
    """Returns the text without comments and test modules."""
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r"#\[cfg\((?:all\()?test.*?\]\s*mod \w+ \{.*", "", text, flags=re.S)


def paths(text, before=r"\b(?=(?:crate|super|self)::)"):
    """Yields every path in `text` as the list of its modules and its last name."""
    for start in re.finditer(before, text):
        found = re.match(r"[\w:]+(?:\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})?", text[start.end() :])
        if found:
            yield from spread([], found.group())


def spread(prefix, tree):
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    names = [name.strip() for name in head.split("::") if name.strip()]
    if not brace:
        names[-1:] = names[-1].split(" as ")[:1] if names else []
        if names:
            yield prefix + names[:-1], names[-1]
        return
    depth, part = 0, ""
    for letter in rest[: rest.rindex("}")] + ",":
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            if part.strip():
                yield from spread(prefix + names, part)
            part = ""
        else:
            part += letter


def target(module, names, item):
    """Returns the module where a path that is written in `module` ends."""
    at = module
    for name in [*names, item]:
        if name == "crate":
            at = at.top()
        elif name == "super":
            at = at.parent
        elif name == "self":
            pass
        elif at and name in at.modules:
            at = at.modules[name]
        elif at and name in at.reexports:
            at = target(at, at.reexports[name], name)
        else:
            break
    return at


def climbs(module):
    """Yields the imports of `module` and of its submodules that refer to a later module."""
    for child in module.modules.values():
        yield from climbs(child)
    for names, item in set((tuple(names), item) for names, item in paths(module.text)):
        to = target(module, names, item)
        if to is None or to is module:
            continue
        ours, theirs = module.path(), to.path()
        common = 0
        while common < min(len(ours), len(theirs)) and ours[common] == theirs[common]:
            common += 1
        if common == len(ours):  # A module below this one.
            continue
        if common == len(theirs):
            if to.parent is None and item != "Result":
                continue  # A name that lib.rs re-exports stands for its definition.
            yield module, to, item
            continue
        siblings = list(module.top().modules)
        at = module.top()
        for name in ours[:common]:
            at = at.modules[name]
        siblings = list(at.modules)
        if siblings.index(theirs[common]) > siblings.index(ours[common]):
            yield module, to, item


def main():
    found = 0
    for crate in sorted((ROOT / "crates").iterdir()):
        for name in ("lib.rs", "main.rs"):
            file = crate / "src" / name
            if not file.exists():
                continue
            top = Module(crate.name, file, None)
            if "--list" in sys.argv:
                for room in top.modules.values():
                    line = re.search(r"^//! (.*)", room.file.read_text(), re.M)
                    print(f"{crate.name}/{room.name:15} {line.group(1) if line else ''}")
                continue
            for module, to, item in climbs(top):
                found += 1
                print(f"{module.file.relative_to(ROOT)} imports {item} of {to.file.relative_to(ROOT)}, which comes after it")
    if found:
        sys.exit(f"{found} imports climb: see the head of ci/rooms.py")


main()
