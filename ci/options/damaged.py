"""CSV as people and programs write it: with stray quotes, rows of other lengths, and marks.

The oracle is Python's csv.
"""

import collections
import csv
import io
import re

from inputs import Case, files, table

csv.field_size_limit(1 << 30)
NUMBER = re.compile(r"[+-]?\d+")
WHITE_SPACE = " \t\n\r\f"


# Random text.


def some_field(rng, style, is_number):
    if is_number:
        text = str(rng.randint(-99, 99))
        return style.quote + text + style.quote if style.quote and rng.random() < 0.2 else text
    text = rng.choice(["a", "b", "", "a b", "gr\xfcn", f"x{style.delimiter}y", "x\ny", "x\r\ny", f"x{style.quote or ''}y"])
    # Without quotes there is no way to write some of these.
    return text if style.quote else re.sub(f"[\r\n{re.escape(style.delimiter)}]", "", text)


def stray(rng, style):
    """Returns a field with quotes in places that are easily misread."""
    quote = style.quote or '"'
    return rng.choice(["Q7", "7Q", "7Q8", "Q7Q8", "QQ7", "QQQ", "QQQQ", " Q7Q", "Q7Q ", "QQ"]).replace("Q", quote)


def some_rows(rng, style, width, numbers, damage, has_lone_cr):
    """Returns text in which rows have faults with probability `damage`.

    The first line, which sets the number of fields, is whole.
    """
    lines = ["\n" * rng.choice([0, 0, 0, 2])]
    for number in range(rng.choice([1, 2, 20, 2000])):
        is_header = number == 0 and style.has_header
        fields = [f"c{place}" if is_header else some_field(rng, style, place in numbers) for place in range(width)]
        fields = [style.field(field) if place not in numbers else field for place, field in enumerate(fields)]
        if number > 0 and rng.random() < damage:
            fault = rng.randrange(5)
            if fault == 0:
                fields.pop()
            elif fault == 1:
                fields.append(rng.choice(["", "", "7", f"{style.quote}{style.quote}" if style.quote else ""]))
            else:
                fields[rng.randrange(width)] = stray(rng, style)
        ends = [style.end] * 20 + [style.end * 2] + (["\r"] if has_lone_cr else [])
        lines.append(style.delimiter.join(fields) + rng.choice(ends))
    text = "".join(lines)
    return text.removesuffix(style.end) if rng.random() < 0.3 else text


def encoded(rng, text):
    """Returns the text as bytes, sometimes with a mark before it."""
    mark = b"\xef\xbb\xbf" if rng.random() < 0.2 else b""
    return mark + text.encode()


# The oracle: Python's csv.


class Read:
    """The rows of a file, each with its line."""

    def __init__(self, text, style):
        syntax = {"quoting": csv.QUOTE_NONE} if style.quote is None else {"quotechar": style.quote}
        syntax["delimiter"] = style.delimiter
        self.rows, self.bad_lines, self.is_open, self.is_empty = [], [], False, True
        lines = list(io.StringIO(text, newline=""))
        # Without `strict`, text behind a closing quote belongs to the field, so the reader finds the end of the row.
        lenient, before, width = csv.reader(lines, **syntax), 0, None
        for row in lenient:
            source = lines[before : lenient.line_num]
            # A lone CR ends a line, too.
            line = 1 + before
            before = lenient.line_num
            if not row:
                continue
            width, self.is_empty = width or len(row), False
            after = list(csv.reader([*source, "\n", "Z"], **syntax))
            self.is_open = self.is_open or after[-1] != ["Z"]
            try:
                is_strict = list(csv.reader(source, strict=True, **syntax)) == [row]
            except csv.Error:
                is_strict = False
            if is_strict and len(row) in (width, width + 1) and not any(row[width:]):
                self.rows.append((line, row))
            else:
                self.bad_lines.append(line)
        if style.has_header:
            self.rows = self.rows[1:]


def number_of(field):
    """Returns a number, None for an empty field, or the text of another."""
    field = field.strip(WHITE_SPACE)
    return int(field) if NUMBER.fullmatch(field) else field or None


# The subcommands.


def damaged_csv(rng, folder):
    style = table(rng)
    style.options[:] = [option for option in style.options if option not in ("--header", "yes", "no")]
    style.options += ["--header", "yes" if style.has_header else "no"]
    make = rng.choice([count, total, line, points])
    return make(rng, folder, style, rng.choice([0, 0.001, 0.01, 0.2]))


def contents_of(rng, style, width, numbers, damage, skips):
    has_lone_cr = damage > 0 and not skips and rng.random() < 0.3
    texts = [some_rows(rng, style, width, numbers, damage, has_lone_cr) for _ in range(rng.choice([1, 1, 2, 4]))]
    return [encoded(rng, text) for text in texts], [Read(text, style) for text in texts]


def case_of(rng, folder, style, contents, tables, bad_lines, skips, arguments, expected, ordered=True, is_bad=False):
    """Makes the case of rows of which those in `bad_lines` are bad.

    An open quote is an error whatever may be set aside.
    """
    is_open = any(table.is_open for table in tables)
    is_bad = is_bad or all(table.is_empty for table in tables)
    says, aside = None, 0
    if (is_open and not bad_lines) or (len(bad_lines) == 1 and not is_open):
        says = "is not closed before the end of the file" if is_open else f"line {bad_lines[0]}: "
    if skips and bad_lines:
        most = rng.choice([len(bad_lines), "all", len(bad_lines) - 1])
        arguments = [*arguments, "--skip-bad-records", str(most)]
        refuses = most == len(bad_lines) - 1
        aside = 0 if refuses else len(bad_lines)
    else:
        refuses = bool(bad_lines)
    inputs = files(rng, folder, contents, ".csv")
    case = inputs.case([*arguments, *style.options], expected, ordered, aside=aside, is_bad=is_open or refuses or is_bad)
    # Files that cannot be read are drawn as well, and may be named first.
    case.says = says if (is_open or refuses) and not inputs.is_bad else None
    return case


def count(rng, folder, style, damage):
    width, skips = rng.randint(1, 4), rng.random() < 0.5
    key = rng.randrange(width)
    contents, tables = contents_of(rng, style, width, (), damage, skips)
    bad_lines = [line for table in tables for line in table.bad_lines]
    counts = collections.Counter(row[key].encode() for table in tables for _, row in table.rows)
    arguments = ["group-by", "--by", str(key + 1)]
    return case_of(rng, folder, style, contents, tables, bad_lines, skips, arguments, sorted(counts.items()))


def total(rng, folder, style, damage):
    width, skips = rng.randint(2, 4), rng.random() < 0.5
    key, value = rng.sample(range(width), 2)
    contents, tables = contents_of(rng, style, width, {value}, damage, skips)
    sums, bad_lines = {}, [line for table in tables for line in table.bad_lines]
    for line, row in (row for one in tables for row in one.rows):
        number = number_of(row[value])
        if isinstance(number, str):
            bad_lines.append(line)
            continue
        before = sums.setdefault(row[key].encode(), b"")
        if number is not None:
            sums[row[key].encode()] = number + (before or 0)
    arguments = ["group-by", "--by", str(key + 1), "--sum", str(value + 1)]
    return case_of(rng, folder, style, contents, tables, bad_lines, skips, arguments, sorted(sums.items()))


def line(rng, folder, style, damage):
    width, skips = rng.randint(2, 4), rng.random() < 0.5
    x, y = rng.sample(range(width), 2)
    contents, tables = contents_of(rng, style, width, {x, y}, damage, skips)
    xs, bad_lines = [], [line for table in tables for line in table.bad_lines]
    for line, row in (row for one in tables for row in one.rows):
        pair = [number_of(row[place]) for place in (x, y)]
        if None in pair:
            continue
        if any(isinstance(number, str) for number in pair):
            bad_lines.append(line)
        else:
            xs.append(pair[0])
    arguments = ["linear-regression", "--x", str(x + 1), "--y", str(y + 1)]
    has_none = len(set(xs)) < 2
    return case_of(rng, folder, style, contents, tables, bad_lines, skips, arguments, {b"n": len(xs)}, is_bad=has_none)


def points(rng, folder, style, damage):
    """All rows are needed, so nothing is set aside."""
    width = rng.randint(1, 4)
    contents, tables = contents_of(rng, style, width, set(range(width)), damage, False)
    (read, *_), (content, *_) = tables, contents
    bad_lines, rows = list(read.bad_lines), []
    for line, row in read.rows:
        numbers = [number_of(field) for field in row[:width]]
        if all(isinstance(number, int) for number in numbers):
            rows.append(numbers)
        else:
            bad_lines.append(line)
    (folder / "points.csv").write_bytes(content)
    arguments = ["kmeans", "-k", "1", str(folder / "points.csv"), *style.options]
    expected = [(1, len(rows), *(sum(column) / len(rows) for column in zip(*rows)))] if rows else []
    is_bad = bool(bad_lines) or read.is_open or not rows
    says = None
    if bad_lines and not read.is_open:
        says = f"line {min(bad_lines)}"
    return Case(arguments, expected, is_bad=is_bad, says=says)
