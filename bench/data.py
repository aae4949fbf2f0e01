#!/usr/bin/env python3
"""Makes the data sets of the benchmarks in bench/data/.

    bench/data.py                 everything that is missing
    bench/data.py text keys       only the sets whose names start so
    bench/data.py --force pca     again, although it is there
    bench/data.py --list          names, sizes, what each is

Text is real: documentation and source code out of Debian packages (fetched with `apt-get download`), never generated
and never repeated to reach a size. Numbers come from seeded generators. The same package versions give the same
bytes; bench/data/MANIFEST.json keeps size, SHA-256 and the package versions of every set, so that two machines can be
compared. Python 3.11, standard library only; streams, so it needs less than 200 MB of memory.
"""

import argparse
import array
import gzip
import hashlib
import html
import io
import json
import os
import random
import re
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib
from pathlib import Path

DATA = Path(__file__).resolve().parent / "data"
PACKAGES = DATA / "packages"
MB = 1_000_000

# Where the prose comes from, in the order in which it is taken: (package, path pattern, how to read a file). 'code'
# keeps only comments, which are English sentences; 'gloss' what WordNet says behind the bar; 'html' loses its markup.
PROSE = [
    ("anarchism", r"\.html$", "html"),
    ("debian-reference-en", r"\.en\.html$", "html"),
    ("linux-source-6.1", r"Documentation/.*\.(rst|txt)$", "text"),
    ("perl-doc", r"\.pod$", "text"),
    ("git-doc", r"\.txt$", "text"),
    ("python3.11-doc", r"\.rst\.txt$", "text"),
    ("postgresql-doc-15", r"\.html$", "html"),
    ("sqlite3-doc", r"\.html$", "html"),
    ("vim-doc", r"\.html$", "html"),
    ("zsh-doc", r"\.html$", "html"),
    ("freebsd-manpages", r"\.gz$", "gzip"),
    ("python-django-doc", r"\.html$", "html"),
    ("libreoffice-help-en-us", r"\.html$", "html"),
    ("cppreference-doc-en-html", r"\.html$", "html"),
    ("erlang-doc", r"\.html$", "html"),
    ("lilypond-doc-html", r"\.html$", "html"),
    ("apache2-doc", r"\.html(\.en(\.utf8)?)?$", "html"),
    ("qtbase5-doc-html", r"\.html$", "html"),
    ("wx3.2-doc", r"\.html$", "html"),
    ("libgtk-4-doc", r"\.html$", "html"),
    ("libboost1.74-doc", r"\.html$", "html"),
    ("dict-gcide", r"gcide\.dict\.dz$", "gzip"),
    ("wordnet-base", r"/wordnet/data\.", "gloss"),
    ("openjdk-17-source", r"\.java$", "code"),
    ("openjdk-17-doc", r"\.html$", "html"),
    ("rust-doc", r"/html/(?!src/).*\.html$", "html"),
    ("linux-source-6.1", r"\.[chS]$", "code"),
    ("golang-1.19-src", r"\.go$", "code"),
    ("rust-src", r"\.rs$", "code"),
    ("binutils-source", r"\.(c|h|texi)$", "code"),
    ("libboost1.74-dev", r"\.hpp$", "code"),
    ("linux-source-6.1", r"Kconfig[^/]*$|\.yaml$", "text"),
    ("gcc-12-source", r"\.(c|cc|h|java|ad[bs]|def)$", "code"),
    ("gcc-12-source", r"\.texi$|/ChangeLog", "text"),
    ("binutils-source", r"\.texi$|/ChangeLog", "text"),
]


def package_file(name):
    """The .deb of a package, fetched once."""
    found = sorted(PACKAGES.glob(f"{name}_*.deb"))
    if not found:
        PACKAGES.mkdir(parents=True, exist_ok=True)
        print(f"  apt-get download {name}", file=sys.stderr)
        done = subprocess.run(["apt-get", "download", "-q", name], cwd=PACKAGES, capture_output=True, text=True)
        found = sorted(PACKAGES.glob(f"{name}_*.deb"))
        if done.returncode or not found:
            sys.exit(
                f"data.py: cannot fetch the Debian package {name}: {done.stderr.strip()}\n"
                f"Run 'apt-get update' first, or put {name}_*.deb into {PACKAGES}"
            )
    return found[-1]


def files_in(name):
    """Yields (path, bytes) of every file of a package, and of the archives that its source packages carry inside."""
    deb = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package_file(name)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with deb, tarfile.open(fileobj=deb.stdout, mode="r|") as outer:
        for member in outer:
            if not member.isfile():
                continue
            if member.name.endswith(".tar.xz"):
                with tarfile.open(fileobj=outer.extractfile(member), mode="r|xz") as inner:
                    for source in inner:
                        if source.isfile():
                            yield source.name, inner.extractfile(source).read()
            elif member.name.endswith("src.zip"):
                with zipfile.ZipFile(io.BytesIO(outer.extractfile(member).read())) as inner:
                    for source in inner.namelist():
                        yield source, inner.read(source)
            else:
                yield member.name, outer.extractfile(member).read()
        deb.kill()


DROPPED = re.compile(rb"<(script|style|nav|head)\b.*?</\1\s*>|<!--.*?-->", re.S | re.I)
BLOCK = re.compile(rb"</?(p|div|h[1-6]|li|ul|ol|dl|dt|dd|tr|td|th|table|section|br|hr|body|blockquote)\b[^>]*>", re.I)
TAG = re.compile(rb"<[^>]*>")
BLANK = re.compile(rb"\s*\n\s*\n\s*")
COMMENT = re.compile(rb"/\*(.*?)\*/|((?:^[ \t]*(?:--|//)[^\n]*\n){2,})", re.S | re.M)
MARGIN = re.compile(rb"^[ \t]*(?:\*+|--+|//+)?[ \t]?", re.M)


def paragraphs(raw, kind):
    """The paragraphs of one file, as bytes without markup."""
    if kind == "gzip":
        raw = gzip.decompress(raw)
    if kind == "html":
        raw = TAG.sub(b"", BLOCK.sub(b"\n\n", DROPPED.sub(b" ", raw)))
        raw = html.unescape(raw.decode("utf-8", "replace")).encode()
    if kind == "code":
        for block in COMMENT.finditer(raw):
            yield from BLANK.split(MARGIN.sub(b"", block[1] or block[2] or b""))
        return
    if kind == "gloss":
        yield from (line.partition(b"| ")[2] for line in raw.splitlines())
        return
    # dictionaries and plain text come line-wrapped; a paragraph ends at an empty line
    yield from BLANK.split(raw)


def prose(limit_bytes):
    """Yields real prose, each paragraph once, until the limit is reached."""
    # One bit per paragraph hash (32 MiB) tells whether a paragraph was there before: navigation bars, licence headers
    # and the same manual in two packages would else repeat. A false hit (below 1 %) only leaves a paragraph out.
    seen = bytearray(1 << 25)
    size = 0
    for package, pattern, kind in PROSE:
        wanted, before = re.compile(pattern), size
        for path, raw in files_in(package):
            if not wanted.search(path):
                continue
            for text in paragraphs(raw, kind):
                text = text.strip()
                if len(text) < 40:
                    continue
                mark = zlib.crc32(text) >> 4
                if seen[mark >> 3] >> (mark & 7) & 1:
                    continue
                seen[mark >> 3] |= 1 << (mark & 7)
                try:
                    text.decode()
                except UnicodeDecodeError:  # old files are in Latin-1
                    text = text.decode("latin-1").encode()
                text += b"\n\n"
                size += len(text)
                yield text
                if size >= limit_bytes:
                    print(f"  {package:26} {(size - before) / MB:7.1f} MB", file=sys.stderr)
                    return
        print(f"  {package:26} {(size - before) / MB:7.1f} MB", file=sys.stderr)
    print(f"  the sources end at {size / MB:.1f} MB", file=sys.stderr)


def source_code(limit_bytes, one_of):
    """Yields the kernel's own source files whole; one file of every `one_of`, chosen by a hash of its path."""
    size = 0
    for path, raw in files_in("linux-source-6.1"):
        if path.endswith((".c", ".S", ".dts", ".dtsi")) and zlib.crc32(path.encode()) % one_of == 0:
            size += len(raw)
            yield raw
            if size >= limit_bytes:
                return


def byte_pairs(size_bytes):
    """Points (x, y) as two bytes each: y = x / 2 + noise, so that there is a line to find."""
    rng = random.Random(1)
    half, quarter = bytes(i >> 1 for i in range(256)), bytes(i >> 2 for i in range(256))
    block = 1 << 20
    for at in range(0, size_bytes, 2 * block):
        n = min(block, (size_bytes - at) // 2)
        x, noise = rng.randbytes(n), rng.randbytes(n)
        # Two big integers add all bytes at once; 127 + 63 never carries into the next byte.
        y = int.from_bytes(x.translate(half), "little") + int.from_bytes(noise.translate(quarter), "little")
        pairs = bytearray(2 * n)
        pairs[0::2], pairs[1::2] = x, y.to_bytes(n, "little")
        yield pairs


def number_pairs(count, keys, seed):
    """Pairs of 32-bit numbers: a key below `keys`, uniform, and a value below 1000."""
    rng = random.Random(seed)
    block = 1 << 20
    for at in range(0, count, block):
        n = min(block, count - at)
        words = array.array("I", rng.randbytes(8 * n))
        words[0::2] = array.array("I", [word * keys >> 32 for word in words[0::2]])
        words[1::2] = array.array("I", [word * 1000 >> 32 for word in words[1::2]])
        yield words.tobytes()


def links(count, pages, seed):
    """Links between pages: two 32-bit numbers. Pages with low numbers have more of them."""
    rng = random.Random(seed)
    block = 1 << 20
    for at in range(0, count, block):
        n = min(block, count - at)
        words = array.array("I", rng.randbytes(16 * n))
        ends = zip(words[0::2], words[1::2])
        yield array.array("I", [min(a * pages >> 32, b * pages >> 32) for a, b in ends]).tobytes()


def fractions(count, keys, seed):
    """Rows of a key below `keys`, uniform, and a value with two decimals, below 10."""
    yield b"key,value\n"
    for block in number_pairs(count, keys, seed):
        words = array.array("I", block)
        yield b"".join(b"%d,%d.%02d\n" % (key, value // 100, value % 100) for key, value in zip(words[0::2], words[1::2]))


def bitmap(width, height):
    """A 24-bit BMP: colour gradients under noise, so that the bins of the histogram fill unequally."""
    assert width * 3 % 4 == 0, "rows without padding"
    pixels = width * height * 3
    yield struct.pack("<2sIHHIIiiHHIIiiII", b"BM", 54 + pixels, 0, 0, 54, 40, width, height, 1, 24, 0, pixels, 2835, 2835, 0, 0)
    rng = random.Random(2)
    quarter = bytes(i >> 2 for i in range(256))
    for row in range(height):
        base = bytearray(3 * width)
        for channel in range(3):
            ramp = bytes((column * (channel + 1) * 192 // width + row * 64 // height) % 192 for column in range(64 * 3))
            base[channel::3] = (ramp * (width // len(ramp) + 1))[:width]
        noise = int.from_bytes(rng.randbytes(3 * width).translate(quarter), "little")
        yield (int.from_bytes(base, "little") + noise).to_bytes(3 * width, "little")


# The four keys of the string-match programs of the Phoenix family.
KEYS = [b"Helloworld", b"howareyou", b"ferrari", b"whotheman"]


def word_lines(limit_bytes):
    """Real words, one per line, with about one of the four keys among 50,000."""
    rng = random.Random(3)
    size = 0
    with open(DATA / "text-500m.txt", "rb") as text:
        while size < limit_bytes and (block := text.readlines(1 << 20)):
            words = re.findall(rb"[A-Za-z']+", b"".join(block))
            for _ in range(len(words) // 50_000 + 1):
                words.insert(rng.randrange(len(words) + 1), rng.choice(KEYS))
            lines = b"\n".join(words) + b"\n"
            size += len(lines)
            yield lines


def points(count, dimensions, grid):
    """Points with whole coordinates, uniform in the grid."""
    rng = random.Random(4)
    for _ in range(count):
        yield b",".join(b"%d" % rng.randrange(grid) for _ in range(dimensions)) + b"\n"


def npy(rows, columns, seed):
    """Returns small whole numbers as numpy writes float64, so that integer and float programs must agree."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}".encode()
    header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
    yield b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
    rng = random.Random(seed)
    for _ in range(rows):
        yield array.array("d", (rng.randrange(100) for _ in range(columns))).tobytes()


SETS = {
    "text-100m.txt": ("real prose, 100 MB (manuals, guides, books)", lambda: prose(100 * MB)),
    "text-500m.txt": ("real prose, 500 MB (the same and further: dictionaries, API documentation, comments, change logs)", lambda: prose(500 * MB)),
    "keys-100m.txt": ("real source code, 100 MB: very many distinct white-space tokens", lambda: source_code(100 * MB, 5)),
    "keys-500m.txt": ("real source code, 500 MB: the same, every file", lambda: source_code(500 * MB, 1)),
    "linear-regression-500m.bin": ("byte pairs (x, y)", lambda: byte_pairs(500 * MB)),
    "histogram-400m.bmp": ("24-bit BMP, 11548 x 11546", lambda: bitmap(11_548, 11_546)),
    "string-match-keys.txt": ("the keys to look for, one per line", lambda: [b"\n".join(KEYS) + b"\n"]),
    "string-match-100m.txt": ("words, one per line (needs text-500m.txt)", lambda: word_lines(100 * MB)),
    "kmeans-100k.csv": ("100,000 points x 3, whole numbers 0..999", lambda: points(100_000, 3, 1000)),
    **{
        f"group-by-{name}.bin": (f"100 million pairs of 32-bit numbers, {keys:,} keys", lambda keys=keys: number_pairs(100_000_000, keys, 6))
        for name, keys in (("1k", 1_000), ("1m", 1_000_000), ("50m", 50_000_000))
    },
    "fractions-20m.csv": ("20 million rows: one of 1,000,000 keys, a value with two decimals", lambda: fractions(20_000_000, 1_000_000, 8)),
    "links-1m": ("1 million links between 100,000 pages", lambda: links(1_000_000, 100_000, 8)),
    "links-10m": ("10 million links between 1 million pages", lambda: links(10_000_000, 1_000_000, 9)),
    "pca-1000.npy": ("1000 x 1000 float64, whole numbers 0..99", lambda: npy(1000, 1000, 5)),
    "matrix-a-1000.npy": ("1000 x 1000 float64, whole numbers 0..99", lambda: npy(1000, 1000, 6)),
    "matrix-b-1000.npy": ("1000 x 1000 float64, whole numbers 0..99", lambda: npy(1000, 1000, 7)),
}


def write(name, chunks):
    """Writes a set aside, then renames it; returns what the manifest says of it."""
    aside, digest, size = DATA / (name + ".part"), hashlib.sha256(), 0
    with open(aside, "wb") as out:
        for chunk in chunks:
            out.write(chunk)
            digest.update(chunk)
            size += len(chunk)
    os.replace(aside, DATA / name)
    return {"bytes": size, "sha256": digest.hexdigest()}


def main():
    args = argparse.ArgumentParser(description="Makes the data sets of the benchmarks in bench/data/.")
    args.add_argument("prefix", nargs="*", help="only sets whose names start so")
    args.add_argument("--force", action="store_true", help="make a set again although it is there")
    args.add_argument("--list", action="store_true", help="print the sets and stop")
    args = args.parse_args()
    chosen = [n for n in SETS if not args.prefix or n.startswith(tuple(args.prefix))]
    if not chosen:
        sys.exit(f"data.py: no set starts with {' or '.join(args.prefix)}; there are {', '.join(SETS)}")
    if "string-match-100m.txt" in chosen and "text-500m.txt" not in chosen:
        chosen.insert(0, "text-500m.txt")
    DATA.mkdir(exist_ok=True)
    manifest_path = DATA / "MANIFEST.json"
    manifest = json.loads(manifest_path.read_text()) if manifest_path.exists() else {"sets": {}, "packages": []}
    for name in chosen:
        what, make = SETS[name]
        if args.list:
            print(f"{name:28} {manifest['sets'].get(name, {}).get('bytes', 0) / MB:8.1f} MB  {what}")
        elif args.force or not (DATA / name).exists() or name not in manifest["sets"]:
            print(f"{name}: {what}", file=sys.stderr)
            manifest["sets"][name] = write(name, make())
            manifest["packages"] = sorted(deb.name for deb in PACKAGES.glob("*.deb"))
            manifest_path.write_text(json.dumps(manifest, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
