#!/usr/bin/env python3
"""Checks that imports run one way: a module imports only from those above it in its list. So there is no circle of
files.

    ci/rooms.py            fails with one line for each import that climbs
    ci/rooms.py --list     prints the rooms in their order, each with the first line of its documentation

Rust: the `mod` lines in lib.rs, main.rs or mod.rs define the order. A file with modules below it comes after them: it
may use them, but they may not use its definitions. Tests are not checked.

Python: the comment at the head of python/gristmill/__init__.py lists the modules of each package. Imports inside of
functions count, and so do names that are given to `import_module`. No module imports a private name of another.

Java: every mention of a class counts, also of one in the same package. Two files may mention each other; no more than
two form a circle.

The root of the library has few public names, and no name has two paths.
"""

import ast
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


#: The most public names at the root of the library. A newcomer reads them all on its first page; a name that only
#: some programs need goes into one of its modules.
FRONT_MAX = 40


def front_faults(text):
    """Yields a line for each fault of the public names in the text of the library's lib.rs.

    >>> list(front_faults("pub use a::{B, C};\\npub mod d {\\n    pub use crate::e::F;\\n    pub use crate::a::C;\\n}"))
    ['C has two paths in crates/engine/src/lib.rs']
    """
    root = {item for _, item in paths(text, r"(?m)^pub use ")}
    if len(root) > FRONT_MAX:
        yield f"crates/engine/src/lib.rs has {len(root)} public names at the root, and may have {FRONT_MAX}"
    below = [item for _, item in paths(text, r"(?m)^ +pub use ")]
    for name in sorted({name for name in below if name in root or below.count(name) > 1}):
        yield f"{name} has two paths in crates/engine/src/lib.rs"


PYTHON = ROOT / "python" / "gristmill"


def python_rooms():
    """Returns the modules of the Python package in their order, each with its file."""
    found = {"_native": None}
    for package, modules in re.findall(r"^#   (\S+): +(.+)$", (PYTHON / "__init__.py").read_text(), re.M):
        folder = PYTHON.joinpath(*package.split(".")) if package != "gristmill" else PYTHON
        prefix = f"{package}." if package != "gristmill" else ""
        found |= {prefix + name: folder / f"{name}.py" for name in modules.split()}
    return found


def python_imports(file):
    """Yields the module and the name of each import in a file of the package."""
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.ImportFrom(module=module, level=level) if level:
                parts = file.parent.relative_to(PYTHON).parts
                path = [*parts[: len(parts) - level + 1], *((module or "").split(".") if module else [])]
                yield from ((".".join(path), alias.name) for alias in node.names)
            case ast.Call(func=ast.Name(id="import_module" | "_import_module"), args=[ast.Constant(value=str(name))]):
                if name.startswith("gristmill."):
                    yield name.removeprefix("gristmill."), ""


def python_faults():
    """Yields a line for each wrong import of the Python package."""
    rooms = python_rooms()
    order = list(rooms)
    for file in sorted(PYTHON.rglob("*.py")):
        here = str(file.relative_to(ROOT))
        name = ".".join(file.relative_to(PYTHON).with_suffix("").parts)
        if name not in rooms and file.name != "__init__.py":
            yield f"{here} is not in the list of python/gristmill/__init__.py"
            continue
        modules = {}  # The names under which this file has modules of the package.
        for module, item in python_imports(file):
            to = f"{module}.{item}".strip(".") if f"{module}.{item}".strip(".") in rooms else module
            modules[item] = to
            if to in rooms and name in rooms and order.index(to) >= order.index(name):
                yield f"{here} imports {item or to} of {rooms[to].relative_to(ROOT)}, which comes after it"
            elif to not in rooms and name in rooms and PYTHON.joinpath(*to.split("."), "__init__.py").exists():
                yield f"{here} imports {item} of the package {to}: name the module"
            elif item.startswith("_") and to != "_native":
                yield f"{here} imports the private name {item} of {to}"
        for module, private in re.findall(r"\b(\w+)\.(_[a-z]\w*)", file.read_text()):
            if modules.get(module, "_native") != "_native" and modules[module].rpartition(".")[2] == module:
                yield f"{here} uses {private} of {modules[module]}, which is private"
    for name, file in rooms.items():
        if file and not file.exists():
            yield f"python/gristmill/__init__.py lists {name}, and there is no {file.relative_to(ROOT)}"


def java_mentions():
    """Returns the classes of the plugin, by package and name, each with the classes of other files that it mentions."""
    texts = {}
    for file in (ROOT / "spark" / "src").glob("[!t]*/java/**/*.java"):
        text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"', "", file.read_text(), flags=re.S)
        texts.setdefault((re.search(r"^package ([\w.]+);", text, re.M).group(1), file.stem), []).append(text)
    mentions = {}
    for (package, name), versions in texts.items():
        for text in versions:
            imports = re.findall(r"^import (?:static )?([\w.]+?)\.([A-Z]\w*)[\w.*]*;", text, re.M)
            seen = {word: (package, word) for word in re.findall(r"\b[A-Z]\w*", text)} | {last: (of, last) for of, last in imports}
            found = {place for word, place in seen.items() if place in texts and place != (package, name)}
            mentions.setdefault((package, name), set()).update(found)
    return mentions


def circles(mentions):
    """Yields each set of names that reach each other.

    >>> [sorted(circle) for circle in circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "d"}})]
    [['a', 'b', 'c']]
    """

    def reached(start):
        found, new = set(), {start}
        while new:
            found |= new
            new = set().union(*(mentions[name] for name in new)) - found
        return found

    reach = {name: reached(name) for name in mentions}
    for name in mentions:
        circle = {other for other in reach[name] if name in reach[other]}
        if len(circle) > 1 and name == min(circle):
            yield circle


def java_faults():
    """Yields a line for each circle of more than two files of the plugin."""
    for circle in circles(java_mentions()):
        if len(circle) > 2:
            yield f"spark: {', '.join(sorted(name for _, name in circle))} mention each other in a circle"


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
    if "--list" in sys.argv:
        for name, file in list(python_rooms().items())[1:]:
            print(f"gristmill.{name:34} {(ast.get_docstring(ast.parse(file.read_text())) or '').partition(chr(10))[0]}")
    else:
        library = stripped((ROOT / "crates/engine/src/lib.rs").read_text())
        faults = [*front_faults(library), *python_faults(), *java_faults()]
        print(*faults, sep="\n", end="\n" if faults else "")
        found += len(faults)
    if found:
        sys.exit(f"{found} imports or names are wrong: see the head of ci/rooms.py")


if __name__ == "__main__":
    main()
