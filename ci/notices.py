#!/usr/bin/env python3
"""Writes THIRD-PARTY.md: the crates linked into the command, and the licences under which they are used.

    ci/notices.py           writes the file
    ci/notices.py --check   checks whether it is up to date; status 1 if not

If a crate offers a choice of licences, Apache-2.0 is taken, which is this repository's licence, and otherwise MIT. The texts
come from the crates as fetched by cargo.
"""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys

TARGET = "x86_64-unknown-linux-gnu"
FEATURES = ["--features", "gristmill-cli/columnar"]
ROOT = pathlib.Path(__file__).resolve().parent.parent
PREFERRED = ["Apache-2.0", "MIT"]
C_LIBRARY = (
    "The command of a release is linked with its C library. So it also contains the GNU C Library, which is used under the GNU Lesser "
    "General Public License, version 2.1 or later ([LICENSES/LGPL-2.1.txt](LICENSES/LGPL-2.1.txt)), and whose source is at "
    "<https://ftp.gnu.org/gnu/glibc/>. Built from the source archive, the command is linked with any other version of it."
)


def cargo(*words):
    line = [os.environ.get("CARGO", "cargo"), *words]
    return subprocess.run(line, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def crates():
    """Returns the linked crates with cargo's metadata."""
    tree = ["tree", "--workspace", *FEATURES, "--locked", "--edges", "normal", "--target", TARGET, "--prefix", "none", "--format", "{p}"]
    linked = {tuple(line.split()[:2]) for line in cargo(*tree).splitlines() if "(proc-macro)" not in line}
    facts = json.loads(cargo("metadata", "--format-version", "1", "--locked", "--filter-platform", TARGET, *FEATURES))
    ours = set(facts["workspace_members"])
    found = [package for package in facts["packages"] if (package["name"], "v" + package["version"]) in linked]
    return sorted((package for package in found if package["id"] not in ours), key=lambda one: (one["name"], one["version"]))


def licence(expression):
    """Chooses the licence from an SPDX expression."""
    choices = [choice.strip(" ()") for choice in re.split(r" OR |/", expression)]
    return next((one for one in PREFERRED if one in choices), expression if len(choices) == 1 else choices[0])


def texts(package):
    """Returns the texts to pass on: the chosen licence, notices, and licences of other sources within the crate."""
    folder = pathlib.Path(package["manifest_path"]).parent
    named = sorted(path for path in folder.iterdir() if path.is_file() and re.match("(?i)(un)?licen[cs]e|copying|notice", path.name))
    taken = licence(package["license"] or "")
    word = {"Apache-2.0": "apache", "MIT": "mit"}.get(taken, "-")
    own = [path for path in named if word in path.name.lower()] or [path for path in named if "notice" not in path.name.lower()]
    notices = [path for path in named if "notice" in path.name.lower()]
    within = sorted(path for name in ["LICENSE", "COPYING"] for path in folder.glob(f"*/{name}"))
    return dict.fromkeys(path.read_text(errors="replace").strip().replace("\r\n", "\n") for path in [*own, *notices, *within])


def document():
    users, names, without = collections.defaultdict(list), {}, []
    for package in crates():
        name = f"{package['name']} {package['version']}"
        names[name] = licence(package["license"] or "unknown")
        found = texts(package)
        for text in found:
            # Texts that differ only in line breaks are the same.
            users[re.sub(r"\s+", " ", text)].append((name, text))
        if not found:
            without.append(name)
    lines = ["# Third-party notices", "", "The command `gristmill` contains the crates below. `ci/notices.py` writes this file.", "", C_LIBRARY, ""]
    lines += ["| crate | used under |", "|---|---|", *(f"| {name} | {taken} |" for name, taken in names.items()), ""]
    if without:
        lines += [f"These name their licence and bring no text of it: {', '.join(without)}.", ""]
    for group in sorted(users.values(), key=lambda group: (-len(group), group[0][0])):
        lines += [f"## {', '.join(dict.fromkeys(name for name, _ in group))}", "", "````text", group[0][1], "````", ""]
    return "\n".join(lines)


def main():
    path, wanted = ROOT / "THIRD-PARTY.md", document()
    if sys.argv[1:] == ["--check"]:
        if not path.exists() or path.read_text() != wanted:
            sys.exit("THIRD-PARTY.md is not as the dependencies are: run ci/notices.py")
        return
    path.write_text(wanted)


if __name__ == "__main__":
    main()
