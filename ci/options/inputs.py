"""Random input, the files that hold it, and random options for both."""

import bz2
import codecs
import dataclasses
import gzip
import io
import lzma
import os
import re
import socket
import zipfile

SPACE = re.compile(rb"[ \t\n\x0b\x0c\r]+")


@dataclasses.dataclass
class Case:
    """A command and its expected answer."""

    arguments: list
    # Rows, the bytes of the answer, or a dictionary of selected rows by their first field.
    expected: object
    ordered: bool = True
    standard: bytes | None = None
    # The files and records that the command sets aside.
    aside: int = 0
    # True if the command must refuse the input.
    is_bad: bool = False
    # True if the command can write its result as a folder.
    has_parts: bool = False
    # A part of the message with which it refuses the input.
    says: str | None = None


@dataclasses.dataclass
class Files:
    """The arguments that name the input."""

    arguments: list
    standard: bytes | None = None
    aside: int = 0
    is_bad: bool = False

    def case(self, arguments, expected, ordered=True, **more):
        """Makes the case of a subcommand that reads these files."""
        aside, is_bad = more.pop("aside", 0), more.pop("is_bad", False)
        return Case([*arguments, *self.arguments], expected, ordered, self.standard, self.aside + aside, self.is_bad or is_bad, **more)


def some_text(rng):
    """Returns text with few or many distinct words, and with bytes that are easily mishandled."""
    words = [bytes(rng.choices(b"abcXYZ'", k=rng.randint(1, 6))) for _ in range(rng.choice([1, 5, 200]))]
    words += rng.sample([b"\xff\xfe", b"a\\b", b"\x08", b"a\x0bb", b"\\N", b'say "x"', b"a,b", b"gr\xc3\xbcn", b"\0"], 4)
    text = b""
    for _ in range(rng.choice([0, 1, 30, 3000])):
        line = b" ".join(rng.choices(words, k=rng.randint(0, 8)))
        text += line + rng.choice([b"\n", b"\n", b"\n", b"\r\n", b"\r\r\n", b"\t\n"])
    # A mark of UTF-16, or a NUL in every second byte, would make it another text.
    if text.startswith(b"\xff\xfe") or b"\0" in text[:4]:
        text = b"ab " + text
    return text[:-1] if rng.random() < 0.3 else text


def texts(rng):
    return [some_text(rng) for _ in range(rng.choice([1, 1, 2, 7]))]


def packed(rng, content):
    """Returns the content, compressed or not, and the extension of its name."""
    packings = [(gzip.compress, ".gz"), (bz2.compress, ".bz2"), (lzma.compress, ".xz"), (zipped, ".zip")]
    pack, end = rng.choice([(bytes, "")] * 3 + packings)
    return pack(content), end


def zipped(content):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("content", content)
    return file.getvalue()


def encoded(rng, contents):
    """Returns the same texts in some encoding, and the options that name it."""

    def is_utf8(content):
        try:
            return content.decode() is not None
        except UnicodeDecodeError:
            return False

    def marked(content):
        if not is_utf8(content) or rng.random() < 0.8:
            return content
        mark, name = rng.choice([(codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16le"), (codecs.BOM_UTF16_BE, "utf-16be")])
        # A second mark would be text.
        return mark + content.removeprefix(codecs.BOM_UTF8).decode().encode(name)

    if rng.random() < 0.1 and all(map(is_utf8, contents)):
        name = rng.choice(["utf-16le", "utf-16be", "gb18030"])
        return [content.decode().encode(name) for content in contents], ["--encoding", name]
    return [marked(content) for content in contents], []


def add_others(rng, below, outside, extension):
    """Adds files that a command skips below a directory, and returns options. None of them may count."""
    kinds = rng.sample(["loop", "link", "fifo", "socket", "hidden", "outside", "hard"], rng.randint(1, 3))
    first = sorted(below.glob("0*"))[0]
    if "loop" in kinds:
        (below / "loop").symlink_to(".")
    if "link" in kinds:
        (below / f"link{extension}").symlink_to(first.name)
    if "hard" in kinds:
        (below / f"hard{''.join(first.suffixes)}").hardlink_to(first)
    if "fifo" in kinds:
        os.mkfifo(below / f"fifo{extension}")
    if "socket" in kinds:
        with socket.socket(socket.AF_UNIX) as end:
            # The path of a socket must be short.
            here = os.getcwd()
            os.chdir(below)
            try:
                end.bind("socket")
            finally:
                os.chdir(here)
    if "hidden" in kinds:
        (below / f".hidden{extension}").write_bytes(b"hidden\n")
    if "outside" in kinds:
        outside.mkdir()
        (outside / f"other{extension}").write_bytes(b"outside\n")
        (below / "outside").symlink_to(outside)
        return []
    return ["--follow"] if rng.random() < 0.5 else []


def add_bad(rng, below):
    """Adds unreadable files and returns their number."""
    bad = {
        "empty.gz": b"",
        "misnamed.xz": b"no archive\n",
        "cut.gz": gzip.compress(rng.randbytes(2000))[:-9],
        "flipped.bz2": bz2.compress(rng.randbytes(2000))[:600] + rng.randbytes(900),
    }
    names = rng.sample(sorted(bad), rng.randint(1, 3))
    for name in names:
        (below / name).write_bytes(bad[name])
    return len(names)


def files(rng, folder, contents, extension, is_text=True):
    """Writes the contents as files, or leaves the only one for standard input."""
    contents, named = encoded(rng, contents) if is_text else (contents, [])
    if len(contents) == 1 and rng.random() < 0.2:
        pipe = ["--read-once"] if rng.random() < 0.2 else []
        return Files(rng.choice([[], ["-"]]) + pipe + named, contents[0])
    below = folder / "in"
    below.mkdir()
    for number, content in enumerate(contents):
        data, end = packed(rng, content)
        (below / f"{number:03}{extension}{end}").write_bytes(data)
    options, aside, is_bad = [], 0, False
    if rng.random() < 0.2:
        aside = add_bad(rng, below)
        most = rng.choice(["all", aside, aside + 1, aside - 1])
        options, is_bad = ["--skip-bad-files", str(most)], most == aside - 1
    names = sorted(str(path) for path in below.iterdir())
    way = rng.randrange(4)
    if way == 0 and rng.random() < 0.5:
        options += add_others(rng, below, folder / "outside", extension)
    if way == 2:
        (folder / "list").write_bytes("\n".join(names).encode())
    ways = [[str(below)], [str(below / "*")], ["--files-from", str(folder / "list")], names]
    return Files([*ways[way], *options, *named], None, aside, is_bad)


@dataclasses.dataclass
class Table:
    """A CSV dialect, and the options that select it."""

    delimiter: str
    # None: no field is quoted.
    quote: str | None
    has_header: bool
    options: list
    end: str

    def rows(self, rows):
        """Formats rows of strings."""
        return "".join(self.delimiter.join(map(self.field, row)) + self.end for row in rows).encode()

    def field(self, text):
        quote = self.quote
        if quote is None or not re.search(f"[\n\r{re.escape(self.delimiter + quote)}]", text):
            return text
        return quote + text.replace(quote, quote * 2) + quote


def table(rng):
    """Chooses a dialect for tables. Without a header an option says so, because numbers alone do not tell."""
    delimiter, quote, options = ",", '"', []
    if rng.random() < 0.3:
        delimiter = rng.choice([";", "|", "\t", ":", " "])
        options += ["--delimiter", {"\t": "tab"}.get(delimiter, delimiter)]
    if rng.random() < 0.3:
        quote = rng.choice(["'", "`", None])
        options += ["--quote", quote or "none"]
    has_header = rng.random() < 0.6
    if not has_header or rng.random() < 0.3:
        options += ["--header", "yes" if has_header else "no"]
    return Table(delimiter, quote, has_header, options, rng.choice(["\n", "\n", "\r\n"]))


def job_options(rng):
    """Chooses options for the job. A combination that makes no sense is refused."""
    options = []

    def maybe(share, *words):
        if rng.random() < share:
            options.extend(str(word) for word in words)

    if rng.random() < 0.3:
        maybe(1, "--map-workers", rng.randint(1, 3), "--reduce-workers", rng.randint(1, 3))
    else:
        maybe(0.8, "--workers", rng.randint(1, 4))
    maybe(0.4, "--isolation", rng.choice(["process", "thread"]))
    maybe(0.2, "--placement", rng.choice(["auto", "pinned", "by-node", "off"]))
    maybe(0.3, "--exchange", rng.choice(["pipelined", "barrier"]))
    maybe(0.3, "--buffer", rng.choice(["auto", "array", "hash", "dense"]))
    maybe(0.3, "--combine", rng.choice(["both", "map", "reduce", "off"]))
    maybe(0.1, "--combine-after", rng.randint(1, 100))
    maybe(0.3, "--pages", rng.choice(["fresh", "reuse", "prealloc"]))
    maybe(0.3, "--page-bytes", rng.choice(["4KiB", "8KiB", "16KiB", "64KiB", "1MiB", "1.5KiB"]))
    maybe(0.2, "--partitions", rng.choice([1, 2, 7, 64, 300, 4096]))
    maybe(0.2, "--map-at-once", rng.randint(1, 3))
    maybe(0.3, "--split-bytes", rng.choice([1, 100, 4096, "0.5MiB"]))
    maybe(0.3, "--chunk-bytes", rng.choice(["4KiB", "64KiB", 100]))
    maybe(0.3, "--memory", rng.choice(["8MiB", "24MiB", "48MiB", "200MiB", "1.5GiB"]))
    maybe(0.2, "--no-sample")
    maybe(0.2, "--deterministic")
    maybe(0.1, "--retries", rng.randint(0, 3))
    maybe(0.1, "--max-failures", rng.randint(0, 3))
    maybe(0.1, "--task-timeout", "60s")
    maybe(0.1, "--explain")
    maybe(0.2, "--quiet")
    return options
