#!/usr/bin/env python3
"""Lays out the pages of the documentation site, which mkdocs then makes into HTML.

    ci/docs.py lay-out FOLDER     copies the pages that docs/site/mkdocs.yml names, and what they link to
    ci/docs.py check FOLDER       fails if HTML there loads anything from elsewhere, or links to a file that is not there

A page keeps its path in the repository, so the links between pages stay as they are. A folder or a program to which a
page links becomes a page, too: a list of its files, or its text. Data is copied as it is.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ROOT / "docs/site/mkdocs.yml"
ASSETS = ["docs/site/site.css", "docs/site/grain.svg"]
#: Files that are copied as they are; all others that are not Markdown are programs.
DATA = {".csv", ".json", ".html", ".png", ".svg"}
CODE = re.compile(r"(^```.*?^```|`[^`\n]*`)", re.M | re.S)
LINK = re.compile(r"\]\(([^()\s]+)\)")


def lay_out(folder):
    """Makes the folder anew, with every page that can be reached from the navigation."""
    shutil.rmtree(folder, ignore_errors=True)
    named = re.findall(r": (\S+\.md)$", CONFIG.read_text(), re.M)
    waiting = [path if (ROOT / path).exists() else str(Path(path).parent) for path in named]
    done = set()
    while waiting:
        path = waiting.pop()
        if path in done:
            continue
        done.add(path)
        source = ROOT / path
        page = folder / page_of(path)
        page.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix in DATA:
            shutil.copyfile(source, page)
            continue
        text = markdown_of(path)
        waiting += [target for target, _ in links(path, text)]
        page.write_text(relinked(path, text))
    for asset in ASSETS:
        (folder / asset).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / asset, folder / asset)


def page_of(path):
    """Returns where a file or folder of the repository is among the pages."""
    source = ROOT / path
    if source.is_dir():
        return f"{path}/README.md"
    return path if source.suffix in {".md", *DATA} else f"{path}.md"


def markdown_of(path):
    """Returns the text of a page, made if the file is no page itself."""
    source = ROOT / path
    if source.is_dir():
        rows = [f"| [`{Path(file).name}`]({Path(file).name}) | {first_line(ROOT / file)} |" for file in files_in(path)]
        return "\n".join([f"# {path}", "", "| | |", "|---|---|", *rows, ""])
    if source.suffix != ".md":
        return f"# {source.name}\n\n`{path}`\n\n````{source.suffix[1:]}\n{source.read_text().rstrip()}\n````\n"
    # For the tests of examples in Rust, the language may be followed by how they run.
    return re.sub(r"^```rust,\w+$", "```rust", source.read_text(), flags=re.M)


def files_in(folder):
    """Returns the files of a folder that belong to the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", f"{folder}/*"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return [name for name in names if Path(name).parent == Path(folder)]


def first_line(file):
    """Returns what a program says about itself, or nothing."""
    if file.suffix in DATA:
        return ""
    line = file.read_text().split("\n", 1)[0]
    found = re.match(r'(?:"""|//! ?|# )(.*?)(?:""")?$', line)
    return found[1] if found else ""


def links(path, text):
    """Returns the files and folders of the repository to which a text links, each with its link."""
    found = []
    for piece in CODE.split(text)[::2]:
        for link in LINK.findall(piece):
            if re.match(r"[a-z]+:|#", link):
                continue
            folder = ROOT / path if (ROOT / path).is_dir() else (ROOT / path).parent
            target = (folder / unquote(link.partition("#")[0])).resolve()
            if not target.exists():
                sys.exit(f"{path}: {link} leads nowhere")
            target = str(target.relative_to(ROOT))
            readme = f"{target}/README.md"
            found.append((readme if (ROOT / readme).exists() else target, link))
    return found


def relinked(path, text):
    """Returns the text as mkdocs reads it, with links to pages instead of folders and programs."""
    pages = {link: page_of(target) for target, link in links(path, text)}
    here = Path(page_of(path)).parent

    def there(match):
        link = match[1]
        if link not in pages:
            return match[0]
        anchor = "#" + link.partition("#")[2] if "#" in link else ""
        return f"]({relative(pages[link], here)}{anchor})"

    pieces = CODE.split(text)
    # Python-Markdown knows that a bar in code does not end a cell, and wants four spaces before an item of an inner
    # list.
    pieces[1::2] = [piece if piece.startswith("```") else piece.replace(r"\|", "|") for piece in pieces[1::2]]
    pieces[::2] = [re.sub(r"^  (?=- )", "    ", LINK.sub(there, piece), flags=re.M) for piece in pieces[::2]]
    return "".join(pieces)


def relative(path, here):
    """Returns a path as seen from a folder."""
    up = 0
    while not Path(path).is_relative_to(here):
        here, up = here.parent, up + 1
    return "../" * up + str(Path(path).relative_to(here))


def check(folder):
    """Returns what is wrong with the built pages."""
    pages = sorted(folder.rglob("*.html"))
    wrong = [] if pages else [f"{folder} has no page"]
    for page in pages:
        if page.name == "404.html":  # its links are those of a server
            continue
        text = page.read_text()
        name = page.relative_to(folder)
        # A reader may follow an `a` to elsewhere; a browser loads all others by itself.
        for tag, link in re.findall(r"<(\w+)\b[^>]*?\s(?:src|href|srcset|data)=[\"']?([^\"'\s>]+)", text):
            parts = urlsplit(link)
            if parts.scheme in ("http", "https") or link.startswith("//"):
                if tag != "a":
                    wrong.append(f"{name}: <{tag}> loads {link}")
            elif not parts.scheme and parts.path and not (page.parent / unquote(parts.path)).exists():
                wrong.append(f"{name}: {link} leads nowhere")
    for sheet in sorted(folder.rglob("*.css")):
        found = re.findall(r"(?:url\(|@import\s*)[\"']?(?:https?:)?//[^\"')]*", sheet.read_text())
        wrong += [f"{sheet.relative_to(folder)}: {link} is elsewhere" for link in found]
    return wrong


def main(command, folder):
    if command == "lay-out":
        lay_out(Path(folder))
        return 0
    wrong = check(Path(folder))
    print("\n".join(wrong) or "the site loads nothing from elsewhere, and its links lead somewhere")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
