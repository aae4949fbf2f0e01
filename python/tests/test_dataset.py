"""Files, stages, caches and what results show; test_properties.py has each function alone."""

import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import gristmill as gm


def test_words_are_counted_in_files(tmp_path):
    texts = ["a b\r\nc\n", "", "b \u00e9\nlast"]
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.txt").write_bytes(text.encode())
    words = gm.read_text(tmp_path).flat_map(str.split).count_by_value()
    assert dict(words) == Counter(word for text in texts for word in text.split())
    assert gm.read_text([tmp_path / "0.txt"]).collect() == ["a b", "c"]
    assert gm.read_files(tmp_path / "0.txt").collect() == [(str(tmp_path / "0.txt"), texts[0].encode())]


def test_a_dictionary_is_made_of_what_python_makes_one_of():
    records = [("a", 1), ["b", [2]], "cd", ("a", None), ((1, 2.5), {"e": 3})]
    assert gm.from_iterable(records).to_dict() == dict(records)
    for wrong in (3, "abc", ([], 1)):
        with pytest.raises((TypeError, ValueError)) as expected:
            dict([wrong])
        with pytest.raises(expected.type):
            gm.from_iterable([wrong]).to_dict()


def test_sums_are_exact_and_nan_is_the_greatest_number():
    pairs = gm.from_iterable([("a", 10**40), ("a", 1), ("b", math.nan), ("b", 1.0)])
    assert pairs.reduce_by_key(gm.sum).to_dict()["a"] == 10**40 + 1
    assert math.isnan(pairs.reduce_by_key(gm.max).to_dict()["b"])
    assert pairs.reduce_by_key(gm.min).to_dict()["b"] == 1.0


def test_stages_follow_each_other():
    lengths = gm.from_iterable(["a b", "bb a", "ccc"]).flat_map(str.split).count_by_value().map(lambda p: (len(p[0]), p[1]))
    assert lengths.reduce_by_key(gm.sum).sort_by_key(descending=True).collect() == [(3, 1), (2, 1), (1, 3)]


def test_a_dataset_can_be_used_twice_and_joined_with_itself():
    counts = gm.from_iterable("abca").count_by_value()
    assert counts.join(counts.map(lambda pair: (pair[0], -pair[1]))).collect() == [("a", (2, -2)), ("b", (1, -1)), ("c", (1, -1))]
    assert counts.collect() == counts.collect()


def test_cached_records_are_made_once_and_only_when_needed():
    cached = gm.range(3).map(lambda n: random.random()).cache()
    fails = gm.range(1).map(lambda n: 1 // n).cache()
    assert "cached records" in fails.map(str).explain()
    assert cached.collect() == cached.map(lambda number: number).collect()


def test_results_and_plans_show_themselves():
    result = gm.from_iterable(["<b>", *"abcdefghijklmnopqrstuvwxyz"]).run()
    assert (repr(result), result[0], len(result)) == ("<Result: 27 records>", "<b>", 27)
    shown = result._repr_html_()
    assert "&lt;b&gt;" in shown and "<b>" not in shown and "and 7 more" in shown
    assert "<th>key</th><th>value</th>" in gm.from_iterable("a").count_by_value().run()._repr_html_()
    assert gm.range(2).map(str)._repr_html_() == "<pre>records in the order of the input\n  map str\n  range(0, 2)</pre>"


def test_a_result_becomes_what_a_dataset_becomes_without_another_job(tmp_path):
    counts = gm.from_iterable("aba").map(lambda letter: (tmp_path / "ran").open("a").write(".") and letter).count_by_value()
    result = counts.run()
    ran = (tmp_path / "ran").read_text()
    assert result.to_dict() == dict(result) == {"a": 2, "b": 1}
    assert result.to_arrow().to_pydict() == {"key": ["a", "b"], "value": [2, 1]}
    assert result.to_pandas()["value"].tolist() == result.to_polars()["value"].to_list() == [2, 1]
    for name in ("write_text", "write_jsonl", "write_csv", "write_parquet"):
        assert getattr(result, name)(tmp_path / "of_result") == 2
        assert (tmp_path / "ran").read_text() == ran
        assert getattr(counts, name)(tmp_path / "of_data") == 2
        assert (tmp_path / "of_result").read_bytes() == (tmp_path / "of_data").read_bytes()
        ran = (tmp_path / "ran").read_text()


def test_a_notebook_shows_what_was_set_aside():
    with gm.configure(on_error="skip"):
        shown = gm.from_iterable(["1", "<i>"]).map(int).run()._repr_html_()
    assert "1 set aside" in shown and "&lt;i&gt;" in shown and "ValueError" in shown


def test_a_job_tells_how_it_ran(engine):
    stats = gm.from_iterable("abca").count_by_value().filter(lambda pair: pair[1] > 1).run().stats
    assert stats["engine"] == engine == repr(stats).splitlines()[0].removeprefix("engine: ")
    assert len(stats["stages"]) == 2
    assert stats._repr_html_().count("<tr>") == 3, "a header and two stages"


def test_a_plan_shows_a_shuffle_that_is_used_twice_once():
    counts = gm.from_iterable("abca").count_by_value()
    assert counts.join(counts.map(str)).explain().splitlines() == [
        "inner join",
        "  count_by_value",
        "    4 records",
        "  map str",
        "  count_by_value (the same as above)",
    ]


def test_a_sum_that_outgrows_a_machine_word_late_costs_no_record():
    """The engine adds up machine words, and begins anew if one overflows, perhaps after it has handed over sums."""
    keys, half = 60_000, 2**62
    pairs = gm.range(4 * keys).map(lambda n: (n % keys, half if n % keys == keys - 1 else n))
    found = pairs.reduce_by_key(gm.sum).collect()
    assert found[:-1] == [(key, 4 * key + 6 * keys) for key in range(keys - 1)]
    assert found[-1] == (keys - 1, 4 * half)


def test_cached_records_are_those_that_were_made_wherever_their_blocks_end() -> None:
    """A program with threads sent each job all cached records as objects."""
    cached = gm.range(50_000).map(lambda n: f"{n:0>40}").cache()
    expected = [f"{n:0>40}" for n in range(50_000)]
    assert cached.collect() == expected
    assert cached.map(int).filter(lambda n: n % 999 == 0).collect() == list(range(0, 50_000, 999))
    assert cached.distinct().count() == 50_000
    with pytest.raises(gm.JobError) as caught:
        cached.map(lambda text: 1 // (int(text) - 31_415)).collect()
    assert caught.value.record == expected[31_415]


def test_parts_of_cached_records_are_as_those_of_a_list() -> None:
    kept: Any = gm.from_iterable(["a" * n for n in range(3000)]).map(str).cache()._node.data
    expected = ["a" * n for n in range(3000)]
    for part in (slice(0, 5), slice(700, 1900), slice(None, None, 7), slice(-3, None), slice(5, 5), slice(2990, 4000)):
        assert list(kept[part]) == expected[part]
    assert (kept[0], kept[-1], kept[1234], len(kept)) == (expected[0], expected[-1], expected[1234], 3000)
    with pytest.raises(IndexError):
        kept[3000]


def test_lines_of_text_are_counted_as_python_counts_them(tmp_path: Path) -> None:
    # They do not become Python's objects in the workers.
    lines = ["", "b", "a\x00", "é", "b", "https://example.com/" + "x" * 40, "https://example.com/" + "x" * 41, "", "last"]
    (tmp_path / "lines").write_bytes("\r\n".join(lines[:4]).encode() + b"\n" + "\n".join(lines[4:]).encode())
    text = gm.read_text(tmp_path / "lines")
    assert text.distinct().collect() == sorted(set(lines))
    assert text.count_by_value().collect() == sorted(Counter(lines).items())
    assert text.count_by_value().top(2, by="value").collect() == [("", 2), ("b", 2)]
    assert text.distinct().map(len).collect() == list(map(len, sorted(set(lines))))
    (tmp_path / "lines").write_bytes(b"good\n\xff\nalso good\n")
    with pytest.raises(gm.InputError, match="line 2, byte 5: this is not UTF-8"):
        text.distinct().collect()
    with gm.configure(on_error="skip"):
        result = text.count_by_value().run()
    assert list(result) == [("also good", 1), ("good", 1)]
    assert [bad.line for bad in result.bad_records] == [2]
