#!/usr/bin/env python3
"""Checks that every relative link in the Markdown files of this repository leads somewhere, and to a heading that exists.

    ci/links.py            fails with one line for each link that is broken
"""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent


def prose(text):
    """The text without blocks and spans of code, in which brackets are no links."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))


def anchors(file):
    """The anchors that GitHub makes of the headings of a file."""
    headings = re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```", "", file.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def main():
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.splitlines()
    broken = []
    for name in names:
        file = ROOT / name
        if not file.exists():
            continue
        for link in re.findall(r"\]\(([^()\s]+)\)", prose(file.read_text())):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (file.parent / unquote(path)).resolve() if path else file
            if not target.exists():
                broken.append(f"{name}: {link} leads nowhere")
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                broken.append(f"{name}: {link}: there is no such heading")
    print("\n".join(broken) or f"the links of {len(names)} files lead somewhere")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
