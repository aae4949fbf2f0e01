#!/usr/bin/env python3
"""Checks that the files and headings of all relative links in this repository's Markdown files exist.

ci/links.py            fails with one line for each broken link
"""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent


def prose(text):
    """Returns the text without code blocks and spans, where brackets are not links."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))


def anchors(file):
    """Returns the anchors that GitHub makes from the headings of a file."""
    headings = re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```", "", file.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def main():
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
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
