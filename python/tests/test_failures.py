"""A function that fails is an error that names the record, or sets the record aside."""

import pickle
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gristmill as gm
from gristmill.engines.replays import Call


def half_way(line: str) -> Iterator[str]:
    yield "first"
    raise LookupError(line)


def failing(line: str) -> str:
    if line == "two":
        raise LookupError(line)
    return line


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    path = tmp_path / "numbers"
    path.write_text("one\ntwo\nthree\n")
    return path


def test_the_error_names_the_record_and_its_place(numbers: Path) -> None:
    with pytest.raises(gm.JobError) as caught:
        gm.read_text(numbers).map(failing).collect()
    error = caught.value
    assert (error.record, error.file, error.line, error.byte) == ("two", str(numbers), 2, 4)
    assert isinstance(error.__cause__, LookupError)
    assert error.__cause__.args == ("two",)
    assert str(error).splitlines()[0] == "LookupError: two"
    shown = "".join(traceback.format_exception(error))
    assert shown.index("raise LookupError(line)") < shown.index("numbers, line 2, byte 4"), "the user's own traceback is first"


def test_errors_travel_between_processes(numbers: Path) -> None:
    with pytest.raises(gm.JobError) as caught:
        gm.read_text(numbers).map(failing).collect()
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.record, again.line) == (str(caught.value), "two", 2)


FAILING = [
    lambda data: data.map(str.upper).flat_map(half_way),
    lambda data: data.filter(len).map(lambda line: line.missing),
    lambda data: data.map_batches(lambda lines: [line.missing for line in lines]),
    lambda data: data.flat_map(lambda line: None),
    lambda data: data.key_by(len).reduce_by_key(lambda a, b: a - b),
    lambda data: data.key_by(len).reduce_by_key(gm.sum),
    lambda data: data.key_by(len).group_by_key().map_groups(lambda key, values: [each.missing for each in values]),
    lambda data: data.map(str.upper).sort_by(lambda line: line.missing),
    lambda data: data.top(1, by=lambda line: line.missing),
]


@pytest.mark.parametrize("fails", FAILING)
def test_every_kind_of_function_may_fail(numbers: Path, fails: object) -> None:
    assert callable(fails)
    with pytest.raises(gm.JobError) as caught:
        fails(gm.read_text(numbers)).collect()
    assert isinstance(caught.value.__cause__, (LookupError, AttributeError, TypeError))


@pytest.mark.parametrize("fails", FAILING)
def test_a_failed_function_fails_again_in_this_process(numbers: Path, fails: object) -> None:
    assert callable(fails)
    with pytest.raises(gm.JobError) as caught:
        fails(gm.read_text(numbers)).collect()
    cause = caught.value.__cause__
    assert cause is not None
    with pytest.raises(type(cause)) as again:
        gm.replay(pickle.loads(pickle.dumps(caught.value)))
    assert again.value.args == cause.args


def test_a_debugger_finds_the_function(numbers: Path) -> None:
    with pytest.raises(gm.JobError) as caught:
        gm.read_text(numbers).map(str.upper).flat_map(half_way).collect()
    with pytest.raises(LookupError) as again:
        gm.replay(caught.value)
    last = again.traceback[-1]
    assert (last.name, last.frame.f_locals) == ("half_way", {"line": "ONE"})


def test_a_replay_that_succeeds_shows_what_became_of_the_record(tmp_path: Path) -> None:
    def once(number: int) -> int:
        (tmp_path / "tried").touch(exist_ok=False)
        return number + 1

    (tmp_path / "tried").touch()
    with pytest.raises(gm.JobError) as caught:
        gm.range(3).map(once).collect()
    (tmp_path / "tried").unlink()
    assert gm.replay(caught.value) == [caught.value.record + 1]


def test_what_cannot_be_pickled_is_not_replayed() -> None:
    call = Call([("map", len)], threading.Lock()).pickled()
    with pytest.raises(gm.GristmillError, match="cannot be pickled"):
        gm.replay(gm.JobError("failed", call=call))


def test_bad_records_are_set_aside(numbers: Path) -> None:
    with gm.configure(on_error="skip"):
        result = gm.read_text(numbers).map(failing).run()
        assert list(result) == ["one", "three"]
        (bad,) = result.bad_records
        assert (bad.record, bad.file, bad.line, bad.byte, bad.error) == ("two", str(numbers), 2, 4, "LookupError: two")


def test_nothing_is_kept_of_a_record_that_fails_half_way(numbers: Path) -> None:
    with gm.configure(on_error="skip"):
        result = gm.read_text(numbers).flat_map(half_way).run()
    assert (list(result), len(result.bad_records)) == ([], 3)


def test_one_bad_record_does_not_spoil_its_batch(numbers: Path) -> None:
    with gm.configure(on_error="skip"):
        result = gm.read_text(numbers).map_batches(lambda lines: [failing(line) for line in lines]).run()
    assert (list(result), [bad.record for bad in result.bad_records]) == (["one", "three"], ["two"])


def test_bad_input_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'1\n{"a"\n2\n')
    with gm.configure(on_error="skip"):
        result = gm.read_jsonl(tmp_path / "a.jsonl").run()
    assert (list(result), result.bad_records[0].record, result.bad_records[0].line) == ([1, 2], b'{"a"', 2)


def test_a_deadline_ends_the_job() -> None:
    with gm.configure(deadline=0.05), pytest.raises(gm.ResourceError, match="0.05 s"):
        gm.range(10**9).count()


def test_mistakes_are_clear_errors() -> None:
    with pytest.raises(gm.PlanError, match="reduce_by_key needs pairs of a key and a value, and this record is 0"):
        gm.range(1).reduce_by_key(gm.sum).collect()  # type: ignore[misc]  # that is the mistake
    with pytest.raises(gm.PlanError, match="3 is neither a reducer such as gm.sum nor a function"):
        gm.from_iterable([(1, 2)]).reduce_by_key(3)  # type: ignore[call-overload]  # that is the mistake
    with pytest.raises(gm.PlanError, match="there is no 'outer' join"):
        gm.range(1).join(gm.range(1), "outer")  # type: ignore[misc, arg-type]  # that is the mistake
    with pytest.raises(gm.PlanError, match=r"top\(by='size'\)"):
        gm.range(1).top(1, by="size")  # type: ignore[arg-type]  # that is the mistake
    with pytest.raises(TypeError, match="keys of the type dict have no order"):
        gm.from_iterable([{"a": 1}]).sort_by(lambda record: record).collect()


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"worker": 3}, TypeError, "there is no setting 'worker'; there are .*workers"),
        ({"workers": 0}, ValueError, "whole number from 1"),
        ({"memory": "much"}, ValueError, 'text such as "512MiB"'),
        ({"memory": -1}, ValueError, "memory=-1"),
        ({"on_error": "ignore"}, ValueError, '"raise" or "skip"'),
        ({"deadline": 0}, ValueError, "greater than 0"),
        ({"engine": "cloud"}, ValueError, '"machine", "spark", a session of Spark, or "local"'),
    ],
)
def test_a_wrong_setting_is_an_error_and_changes_nothing(changes: dict[str, object], error: type[Exception], message: str, engine: str) -> None:
    with pytest.raises(error, match=message):
        gm.configure(**changes)
    with gm.configure() as settings:
        assert settings == gm.Settings(engine=engine)  # type: ignore[arg-type]  # the fixture knows the names


def test_settings_of_the_program_hold_in_its_threads_and_those_of_a_block_in_the_block() -> None:
    seen: list[gm.Settings] = []

    def look() -> None:
        with gm.configure() as settings:
            seen.append(settings)

    with gm.configure(workers=5):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    before = gm.configure(workers=7)
    try:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    finally:
        before.undo()
    assert [settings.workers for settings in seen] == [None, 7]


def test_blocks_of_several_threads_leave_the_settings_of_the_program_as_they_were(engine: str) -> None:
    """The settings of one of two threads that entered a block together stayed for the rest of the program."""
    one, other = gm.configure(workers=3), gm.configure(retries=7)
    with one, other as settings:
        assert (settings.workers, settings.others) == (3, {"retries": 7})
    with gm.configure() as settings:
        assert settings == gm.Settings(engine=engine)  # type: ignore[arg-type]  # the fixture knows the names
    change, later = gm.configure(workers=3), gm.configure(retries=7)
    change.undo()
    change.undo()
    with gm.configure() as settings:
        assert (settings.workers, settings.others) == (None, {"retries": 7})
    later.undo()


def _unless(wrong: Any) -> Any:
    def function(record: Any) -> Any:
        if record == wrong:
            raise KeyError(record)
        return record

    return function


def test_a_bad_record_behind_a_shuffle_takes_no_other_with_it() -> None:
    # With on_error="skip", all records of its key vanished, and only one of them was listed.
    groups = gm.from_iterable([(1, 1), (1, 2), (2, 2)]).group_by_key()
    each = groups.map_groups(lambda key, values: [(key, value) for value in sorted(values)])
    joined = gm.from_iterable([(1, 1), (1, 2), (2, 2)]).join(gm.from_iterable([(1, 5)]))
    with gm.configure(on_error="skip"):
        for records, wrong, left in [(each, (1, 2), [(1, 1), (2, 2)]), (joined, (1, (2, 5)), [(1, (1, 5))])]:
            for behind in (records.map(_unless(wrong)), records.map(_unless(wrong)).distinct()):
                result = behind.run()
                assert sorted(result) == left
                assert [bad.record for bad in result.bad_records] == [wrong]


def test_an_error_between_two_shuffles_names_its_record() -> None:
    # Its record was None.
    counted = gm.from_iterable("abcab").count_by_value()
    for behind in (counted.map(_unless(("b", 2))), counted.map(_unless(("b", 2))).distinct()):
        with pytest.raises(gm.JobError) as caught:
            behind.collect()
        assert caught.value.record == ("b", 2)


def test_bad_records_of_cached_records_are_listed() -> None:
    # The result of a cached dataset listed none of them.
    with gm.configure(on_error="skip"):
        cached = gm.from_iterable([1, 2, 3]).map(_unless(2)).cache()
        for _ in range(2):
            result = cached.map(_unless(3)).run()
            assert list(result) == [1]
            assert [bad.record for bad in result.bad_records] == [2, 3]


@pytest.mark.parametrize("record", [b"ab", "ab", 7, (1,), (1, 2, 3)])
def test_an_order_by_key_needs_pairs(record: Any) -> None:
    # sort_by_key of bytes sorted by their first byte.
    data = gm.from_iterable([(1, 2), record])
    for job in (data.sort_by_key(), data.top(1, by="key"), data.top(1, by="value")):
        with pytest.raises(gm.PlanError, match="needs pairs of a key and a value, and this record is"):
            job.collect()
