"""Subcommands with random input and options: the command, and the expected answer from a few lines of Python."""

import collections
import fractions
import json
import re
import statistics
import struct

from damaged import damaged_csv
from inputs import SPACE, Files, files, packed, some_text, table, texts


def rank(rng, counts):
    """Returns options for the order of rows, the rows (key, number) in that order, and whether the order is defined."""
    by_key = sorted(counts.items())
    by_count = sorted(by_key, key=lambda row: -row[1])
    way = rng.randrange(6)
    if way == 0:
        return ["--sort", "count"], by_count, True
    if way == 1:
        return ["--sort", "none"], by_key, False
    if way == 2:
        top = rng.randint(1, 20)
        return ["--top", str(top)], by_count[:top], True
    if way == 3:
        top = rng.randint(1, 20)
        return ["--top", str(top), "--sort", "key"], sorted(by_count[:top]), True
    return rng.choice([[], ["--sort", "key"]]), by_key, True


def word_count(rng, folder):
    contents = texts(rng)
    tokens = rng.choice(["space", "alpha"])
    counts = collections.Counter()
    for text in contents:
        if tokens == "alpha":
            found = [word.lstrip(b"'") for word in re.split(rb"[^A-Z']+", text.upper())]
        else:
            found = SPACE.split(text)
        counts.update(word for word in found if word)
    options, rows, ordered = rank(rng, counts)
    return files(rng, folder, contents, ".txt").case(["word-count", "--tokens", tokens, *options], rows, ordered)


def group_by(rng, folder):
    style = table(rng)
    is_json, sums = rng.random() < 0.4, rng.random() < 0.7
    describes = sums and rng.random() < 0.4
    keys = sorted(keys_for(rng, style, is_json))
    # 1. Rows: the numbers of each key. A row with a bad number is set aside; one with an empty number is left out.
    has_fractions, empty, bad = (rng.random() < share and sums for share in (0.4, 0.2, 0.2))
    base = rng.choice([0, 0, 10**6, 10**9, 10**15]) if describes else 0
    totals, counts, bad_rows, empty_rows, contents = {}, collections.Counter(), 0, 0, []
    for _ in range(rng.choice([1, 2, 5])):
        rows = []
        for _ in range(rng.choice([1, 10, 3000])):
            key, value = rng.choice(keys), number(rng, has_fractions) if base == 0 else str(base + rng.randint(-9, 9) / 8)
            if bad and rng.random() < 0.01:
                value, bad_rows = rng.choice(["x7", "1e", "--3", "nan", "0x10"]), bad_rows + 1
            elif empty and rng.random() < 0.1:
                value, empty_rows = "", empty_rows + 1
                totals.setdefault(key.encode(), [])
            else:
                totals.setdefault(key.encode(), []).append(value)
            counts[key.encode()] += 1
            rows.append((key, value))
        contents.append(rows)
    # 2. Their format: if columns are found by name, each file may have them in a different order.
    by_name = is_json or (style.has_header and rng.random() < 0.6)
    places = [1, 2, 0]
    written = []
    for rows in contents:
        if by_name and not is_json:
            rng.shuffle(places)
        written.append(as_json(rng, rows) if is_json else as_table(style, rows, places))
    by, summed = ("key", "v") if by_name else (str(places.index(1) + 1), str(places.index(2) + 1))
    if not by_name and rng.random() < 0.3:
        by, summed = "number:" + by, "number:" + summed
    inputs = files(rng, folder, written, ".jsonl" if is_json else ".csv")
    options = [] if is_json else list(style.options)
    if inputs.standard is not None and is_json:
        options += ["--input-format", "jsonl"]
    # 3. Their errors.
    refused = bad_rows
    if sums and rng.random() < 0.2:
        options += ["--strict"]
        refused += empty_rows
        if empty_rows:
            totals = {key: values for key, values in totals.items() if values}
    aside, is_bad = 0, refused > 0
    if refused and rng.random() < 0.7:
        most = rng.choice([refused, refused + 5, refused - 1])
        options += ["--skip-bad-records", str(most)]
        aside, is_bad = refused, most < refused
    # 4. The answer, which is rounded once if the job is deterministic.
    if has_fractions and not describes:
        options += ["--deterministic"]
    if describes:
        answer = {key: figures([float(value) for value in values]) for key, values in totals.items()}
        order, rows, ordered = ["--sort", "none"], [(key, *figures) for key, figures in sorted(answer.items())], False
    elif sums:
        answer = {key: total(values) for key, values in totals.items()}
        order, rows, ordered = ([], sorted(answer.items()), True) if empty_rows else rank(rng, answer)
    else:
        order, rows, ordered = rank(rng, counts)
    what = ["--describe" if describes else "--sum", summed] if sums else []
    return inputs.case(["group-by", "--by", by, *what, *options, *order], rows, ordered, aside=aside, is_bad=is_bad)


def keys_for(rng, style, is_json):
    keys = [some_text(rng)[:5].decode("latin-1").replace("\0", "").strip() or "k" for _ in range(rng.choice([1, 3, 40]))]
    keys += ["a,b", 'a"b', "a\nb", "0", "a\tb", "it's"]
    if is_json:
        return set(keys)
    # Fields that begin with white space, or with a character that merely resembles a quote, are not tested here.
    separators = set("\"'`\r\n\t ,;|:") if style.quote is None else set("\"'`\r") - {style.quote}
    return {"".join(letter for letter in key if letter not in separators) or "k" for key in keys}


def number(rng, has_fractions):
    if has_fractions and rng.random() < 0.5:
        return rng.choice([repr(round(rng.uniform(-1e6, 1e6), rng.randint(1, 9))), "0.1", "-2.5e-3", "1E5"])
    return str(rng.randint(-9, 10 ** rng.randint(1, 24)))


def figures(values):
    """Returns count, mean, standard deviation, least and greatest of numbers."""
    if not values:
        return 0, b"", b"", b"", b""
    unit = max(map(abs, values)) or 1.0
    mean, deviation = (statistics.fmean(values) / unit, unit), b""
    if len(values) > 1:
        # It is exact to its own size, however far the numbers are from 0.
        deviation = statistics.stdev(values)
        unit = max(deviation, 1e-13 * unit)
        deviation = deviation / unit, unit
    return len(values), mean, deviation, min(values), max(values)


def total(values):
    """Returns the sum of numbers as written: exact, and rounded once if any of them is a fraction."""
    if not values:
        return b""
    if any(re.search("[.eE]", value) for value in values):
        is_fraction = re.compile("[.eE]").search
        return float(sum(fractions.Fraction(float(value) if is_fraction(value) else int(value)) for value in values))
    return sum(map(int, values))


def as_json(rng, rows):
    def line(key, value):
        shown = None if value == "" else value
        text = json.dumps({"v": "@", "key": key, "more": [1, {"key": 2}]})
        is_number = shown is not None and re.fullmatch(r"-?\d+(\.\d+)?([eE]-?\d+)?", value)
        return text.replace('"@"', value if is_number else json.dumps(shown)) + rng.choice(["\n", "\r\n"])

    return "".join(line(*row) for row in rows).encode()


def as_table(style, rows, places):
    """Returns rows of three columns; the first one is not used."""
    lines = [("other", "key", "v")] if style.has_header else []
    lines += [("x", key, value) for key, value in rows]
    return style.rows([[line[place] for place in places] for line in lines])


def string_match(rng, folder):
    contents = texts(rng)
    lines = [line.removesuffix(b"\r") for text in contents for line in text.split(b"\n")]
    keys = [key for key in dict.fromkeys([*rng.choices(lines, k=5), b"absent"]) if key]
    lines_of_keys = b"\n".join(keys) + b"\n"
    # No mark of UTF-16; empty keys are left out.
    data, end = packed(rng, b"\n" * lines_of_keys.startswith(b"\xff\xfe") + lines_of_keys)
    (folder / f"keys{end}").write_bytes(data)
    keys = list(dict.fromkeys(key.removesuffix(b"\r") for key in keys))
    keys = [key for key in keys if key]
    counts = collections.Counter(lines)
    rows = [(key, counts[key]) for key in keys]
    return files(rng, folder, contents, ".txt").case(["string-match", "--keys", str(folder / f"keys{end}")], rows)


def sort(rng, folder):
    if rng.random() < 0.3:
        contents = [rng.randbytes(100 * rng.choice([0, 1, 50])) for _ in range(rng.randint(1, 3))]
        records = sorted(text[at : at + 100] for text in contents for at in range(0, len(text), 100))
        inputs = files(rng, folder, contents, ".bin", is_text=False)
        return inputs.case(["sort", "--records", "terasort"], b"".join(records), has_parts=True)
    contents = texts(rng)
    lines = [line for text in contents for line in text.removesuffix(b"\n").split(b"\n") if text]
    options = []
    if rng.random() < 0.4:
        start = rng.randint(0, 3)
        end = start + rng.randint(1, 4)
        options = ["--key-bytes", f"{start}..{end}"]
        lines.sort(key=lambda line: (line[start:end], line))
    else:
        lines.sort()
    inputs = files(rng, folder, contents, ".txt")
    return inputs.case(["sort", *options], b"".join(line + b"\n" for line in lines), has_parts=True)


def palindromes(rng, folder):
    def of_line(line):
        return sum(line[i:j] == line[i:j][::-1] for i in range(len(line)) for j in range(i + 1, len(line) + 1))

    contents = [bytes(rng.choices(b"aab\r\n", k=rng.choice([0, 5, 200]))) for _ in range(rng.randint(1, 3))]
    total = sum(of_line(line.removesuffix(b"\r")) for text in contents for line in text.split(b"\n"))
    arguments = ["palindromes", "--print", "total", "--algorithm", rng.choice(["auto", "brute", "manacher", "tree"])]
    return files(rng, folder, contents, ".txt").case(arguments, [(b"total", total)])


def histogram(rng, folder):
    counts, contents = collections.Counter(), []
    for _ in range(rng.randint(1, 3)):
        width, height = 4 * rng.randint(1, 20), rng.randint(1, 20)
        pixels = rng.randbytes(3 * width * height)
        for at, value in enumerate(pixels):
            counts[at % 3, value] += 1
        head = struct.pack("<2sIIIIiiHHIIiiII", b"BM", 54 + len(pixels), 0, 54, 40, width, height, 1, 24, 0, len(pixels), 0, 0, 0, 0)
        contents.append(head + pixels)
    channels = [b"blue", b"green", b"red"]
    rows = [(name, value, counts[number, value]) for number, name in enumerate(channels) for value in range(256)]
    return files(rng, folder, contents, ".bmp", is_text=False).case(["histogram"], rows)


def linear_regression(rng, folder):
    style = table(rng)
    xs = [rng.randint(-1000, 1000) for _ in range(rng.choice([2, 100, 5000]))] + [5000]
    slope, intercept = rng.randint(-5, 5), rng.randint(-100, 100)
    # Any magnitude: squares of such numbers overflow, or vanish.
    of_x, of_y = (rng.choice([0, 0, 0, -200, -100, 100, 200]) for _ in range(2))
    lines = [[f"{x}e{of_x}", f"{slope * x + intercept}e{of_y}"] for x in xs]
    bad = rng.choice([0, 0, 0, 1, 3])
    for _ in range(bad):
        lines.insert(rng.randint(0, len(lines)), rng.choice([["x", "1"], ["1", "y"], ["?", "?"]]))
    named = ["--x", "x", "--y", "y"] if style.has_header else ["--x", "1", "--y", "2"]
    header = [["x", "y"]] if style.has_header else []
    inputs = files(rng, folder, [style.rows(header + lines)], ".csv")
    options, aside, is_bad = list(style.options), 0, bad > 0
    if bad and rng.random() < 0.7:
        most = rng.choice([bad, bad + 2, bad - 1])
        options += ["--skip-bad-records", str(most)]
        aside, is_bad = bad, most < bad
    if rng.random() < 0.2:
        options += ["--strict"]
    unit = float(f"1e{of_y - of_x}")
    wanted = {b"n": len(xs), b"slope": (slope, unit), b"intercept": (intercept, float(f"1e{of_y}"))}
    if of_x or of_y:
        options += ["--deterministic"]
    # A slope beyond the largest number is an error.
    is_bad |= unit > 1e300 and slope != 0
    return inputs.case(["linear-regression", *named, *options], wanted, aside=aside, is_bad=is_bad)


def matrix(rng, rows, columns):
    return [[rng.randint(-9, 9) for _ in range(columns)] for _ in range(rows)]


def numbers(style, rows):
    """Returns a table of numbers. Its header has one letter per column."""
    header = [["abcdefghij"[at % 10] + str(at) for at in range(len(rows[0]))]] if style.has_header else []
    return style.rows(header + [[str(value) for value in row] for row in rows])


def matrix_multiply(rng, folder):
    style = table(rng)
    rows, inner, columns = (rng.choice([1, 2, 5, 40]) for _ in range(3))
    left, right = matrix(rng, rows, inner), matrix(rng, inner, columns)
    product = [[sum(a * b for a, b in zip(row, column)) for column in zip(*right)] for row in left]
    inputs = files(rng, folder, [numbers(style, right)], ".csv")
    named = inputs.arguments[inputs.arguments.index("--encoding") + 1] if "--encoding" in inputs.arguments else "utf-8"
    data, end = packed(rng, numbers(style, left).decode().encode(named))
    (folder / f"left.csv{end}").write_bytes(data)
    arguments = ["matrix-multiply", "--left", str(folder / f"left.csv{end}"), "--way", rng.choice(["shared-output", "pairs"])]
    arguments += style.options
    if rng.random() < 0.5:
        return inputs.case(arguments, product)
    trace = sum(product[at][at] for at in range(min(rows, columns)))
    summary = [(b"trace", trace), (b"sum", sum(map(sum, product))), (b"corner", product[-1][-1])]
    return inputs.case([*arguments, "--print", "summary"], summary)


def kmeans(rng, folder):
    style = table(rng)
    d, k = rng.randint(1, 5), rng.randint(1, 5)
    points = [[round(rng.uniform(-100, 100), 6) for _ in range(d)] for _ in range(rng.choice([k, 50, 2000]))]
    points = points + [[float(n)] * d for n in range(k)]
    centres = [list(point) for point in points[:k]]
    steps = rng.randint(1, 5)
    for _ in range(steps):
        groups = [[] for _ in centres]
        for point in points:
            distances = [sum((a - b) ** 2 for a, b in zip(point, centre)) for centre in centres]
            groups[distances.index(min(distances))].append(point)
        sizes = [len(group) for group in groups]
        before = centres
        centres = [[sum(xs) / len(group) for xs in zip(*group)] if group else centre for group, centre in zip(groups, centres)]
        if before == centres:
            break
    inputs = files(rng, folder, [numbers(style, points)], ".csv")
    arguments = ["kmeans", "-k", str(k), "--start", "first", "--iterations", str(steps), *style.options]
    return inputs.case(arguments, [(number + 1, size, *centre) for number, (size, centre) in enumerate(zip(sizes, centres))])


def pca(rng, folder):
    style = table(rng)
    d, n = rng.randint(1, 5), rng.choice([2, 30, 500])
    base = rng.choice([0, 10**9])
    data = [[base + value for value in row] for row in matrix(rng, n, d)]
    means = [(number + 1, sum(column) / n) for number, column in enumerate(zip(*data))]
    return files(rng, folder, [numbers(style, data)], ".csv").case(["pca", "--print", "means", *style.options], means)


def tile_search(rng, folder):
    rows, columns = rng.choice([(2, 2), (2, 3), (3, 2), (1, 4), (3, 3)])
    depth = rng.randint(0, 12)
    start = (*range(1, rows * columns), 0)
    seen, frontier, counts = {start}, [start], []
    while frontier and len(counts) <= depth:
        counts.append(len(frontier))
        after = []
        for state in frontier:
            at = state.index(0)
            for move in (-1, 1, -columns, columns):
                to = at + move
                if not 0 <= to < len(state) or (abs(move) == 1 and to // columns != at // columns):
                    continue
                tiles = list(state)
                tiles[at], tiles[to] = tiles[to], 0
                if (tiles := tuple(tiles)) not in seen:
                    seen.add(tiles)
                    after.append(tiles)
        frontier = after
    arguments = ["tile-search", "--rows", str(rows), "--columns", str(columns), "--depth", str(depth)]
    return Files([]).case(arguments, list(enumerate(counts)))


SUBCOMMANDS = [
    word_count,
    group_by,
    string_match,
    sort,
    palindromes,
    histogram,
    linear_regression,
    matrix_multiply,
    kmeans,
    pca,
    tile_search,
    damaged_csv,
]
