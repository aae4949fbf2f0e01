//! Items that are added to aggregates in place give the result of ten sequential lines, in any plan, whichever worker
//! dies, and with records set aside.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gristmill::aggregates::{ApproxDistinct, ApproxQuantiles, Numbers, Top};
use gristmill::internal::{MOMENTS, Moment};
use gristmill::options::{Buffer, Combining, Options};
use gristmill::{
    Aggregate, Bytes, Chunk, Datum, Emit, Input, Isolation, Job, Key, MapReduce, Next, Pairs, ProgramError,
};

fn main() {
    common::run(
        &[
            ("any_plan_gives_the_same_result", plans),
            ("aggregates_larger_than_the_table_are_merged", many_keys),
            ("rounded_sums_have_the_same_bits_with_any_number_of_workers", rounded),
            ("a_worker_killed_at_any_moment_changes_nothing", deaths),
            ("items_of_a_record_that_is_set_aside_are_not_added", set_aside),
            ("steps_that_add_in_steps_give_the_same_result", steps),
            ("pairs_may_be_emitted_between_items", mixed),
            ("items_without_bytes_are_counted", without_bytes),
            ("an_item_that_cannot_be_added_is_its_records_fault", panics),
            ("the_width_of_an_aggregate_is_not_asked_for_with_each_item", widths),
            ("aggregates_of_the_library_say_what_a_sorted_list_says", library),
            ("quantiles_of_a_deterministic_job_have_the_same_bytes", same_quantiles),
        ],
        &[],
    );
}

/// The numbers that occur beside a key.
#[derive(Clone, Copy, Debug, Default, Datum, PartialEq)]
struct Statistic {
    count: u64,
    sum: u64,
    /// The complement of the least, so that nothing is 0.
    not_least: u64,
    most: u64,
}

impl Aggregate for Statistic {
    type Item = u32;

    fn add(statistic: &mut Statistic, number: u32) {
        let number = u64::from(number);
        Statistic::merge(statistic, Statistic { count: 1, sum: number, not_least: !number, most: number });
    }

    fn merge(statistic: &mut Statistic, other: Statistic) {
        statistic.count += other.count;
        statistic.sum += other.sum;
        statistic.not_least = statistic.not_least.max(other.not_least);
        statistic.most = statistic.most.max(other.most);
    }
}

/// The different last two digits of numbers, in 100 bytes.
#[derive(Clone, Debug, Default, Datum)]
#[datum(borrowed = DigitsRef, exact)]
struct Digits {
    seen: Vec<u8>,
}

impl Aggregate for Digits {
    type Item = u32;

    fn add(digits: &mut Digits, number: u32) {
        digits.seen.resize(100, 0);
        digits.seen[(number % 100) as usize] = 1;
    }

    fn merge(digits: &mut Digits, other: Digits) {
        digits.seen.resize(100, 0);
        digits.seen.iter_mut().zip(other.seen).for_each(|(seen, other)| *seen |= other);
    }
}

/// A sum that is rounded at each step.
#[derive(Clone, Copy, Debug, Default, Datum)]
struct Total {
    sum: f64,
}

impl Aggregate for Total {
    type Item = u32;

    fn add(total: &mut Total, number: u32) {
        total.sum += 1.0 / (f64::from(number) + 1.0);
    }

    fn merge(total: &mut Total, other: Total) {
        total.sum += other.sum;
    }
}

/// Lines of a word and a number: adds the number to the aggregate of the word. A line without a number is an error.
struct ByWord<V>(std::marker::PhantomData<V>, Duration);

impl<V: Aggregate<Item = u32> + Sync> MapReduce for ByWord<V> {
    type Key = Bytes;
    type Value = V;

    fn combiner(&self) -> Option<impl Fn(V::Owned, V::Owned) -> V::Owned> {
        Some(V::merged)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, V>) -> Result<(), ProgramError> {
        std::thread::sleep(self.1);
        for line in str::from_utf8(chunk.bytes())?.lines() {
            let (word, number) = line.split_once(' ').ok_or_else(|| ProgramError::new("no number"))?;
            out.add(word.as_bytes(), number.parse()?);
        }
        Ok(())
    }
}

/// The same by the length of the word, in a small domain.
struct ByLength;

impl MapReduce for ByLength {
    type Key = u8;
    type Value = Digits;

    fn keys(&self) -> Option<usize> {
        Some(256)
    }

    fn combiner(&self) -> Option<impl Fn(Digits, Digits) -> Digits> {
        Some(Digits::merged)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u8, Digits>) -> Result<(), ProgramError> {
        for line in str::from_utf8(chunk.bytes())?.lines() {
            let (word, number) = line.split_once(' ').ok_or_else(|| ProgramError::new("no number"))?;
            out.add(word.len() as u8, number.parse()?);
        }
        Ok(())
    }
}

const STATISTICS: ByWord<Statistic> = ByWord(std::marker::PhantomData, Duration::ZERO);
const DIGITS: ByWord<Digits> = ByWord(std::marker::PhantomData, Duration::ZERO);
const TOTALS: ByWord<Total> = ByWord(std::marker::PhantomData, Duration::ZERO);

/// Makes lines of one of `words` words, some of them long, and a number.
fn lines(count: u32, words: u32) -> Vec<(String, u32)> {
    let mixed = |n: u32| n.wrapping_mul(2_654_435_761) >> 7;
    let word = |n: u32| {
        let number = mixed(n) % words;
        if number.is_multiple_of(5) { format!("a-word-longer-than-a-slot-{number}") } else { format!("w{number}") }
    };
    (0..count).map(|n| (word(n), mixed(n ^ 0x5555) % 1_000_000)).collect()
}

fn text(lines: &[(String, u32)]) -> String {
    lines.iter().map(|(word, number)| format!("{word} {number}\n")).collect()
}

/// The answer of ten sequential lines for each word: count, sum, least, most, and the different last two digits.
type Expected = BTreeMap<String, (u64, u64, u64, u64, BTreeSet<u8>)>;

fn expected(lines: &[(String, u32)]) -> Expected {
    let mut expected = Expected::new();
    for (word, number) in lines {
        let number = u64::from(*number);
        let found = expected.entry(word.clone()).or_insert((0, 0, number, number, BTreeSet::new()));
        (found.0, found.1, found.2, found.3) =
            (found.0 + 1, found.1 + number, found.2.min(number), found.3.max(number));
        found.4.insert((number % 100) as u8);
    }
    expected
}

fn digits(digits: DigitsRef<'_>) -> BTreeSet<u8> {
    (0..100).filter(|digit| digits.seen[usize::from(*digit)] == 1).collect()
}

fn job<'j, J: MapReduce>(program: &'j J, path: &Path) -> Job<'j, J> {
    Job::new(program, Input::paths([path])).split_bytes(4000).page_bytes(4096)
}

/// Runs a job of statistics and one of digits with these options, and compares both.
fn compare(path: &Path, expected: &Expected, settings: &[(&str, &str)]) {
    let mut options = Options::default();
    settings.iter().for_each(|(name, value)| options.set(name, value).expect("there is such an option"));
    let (found, _) = job(&STATISTICS, path).options(&options).run().expect("the job runs");
    let found: BTreeMap<String, _> =
        found.iter().map(|(word, s)| (utf8(word), (s.count, s.sum, !s.not_least, s.most))).collect();
    let numbers: BTreeMap<String, _> = expected.iter().map(|(word, s)| (word.clone(), (s.0, s.1, s.2, s.3))).collect();
    assert_eq!(found, numbers, "{settings:?}");
    let (found, _) = job(&DIGITS, path).options(&options).run().expect("the job runs");
    let found: BTreeMap<String, _> = found.iter().map(|(word, d)| (utf8(word), digits(d))).collect();
    let seen: BTreeMap<String, _> = expected.iter().map(|(word, s)| (word.clone(), s.4.clone())).collect();
    assert_eq!(found, seen, "{settings:?}");
}

fn utf8(word: &[u8]) -> String {
    String::from_utf8(word.to_vec()).expect("words are text")
}

fn plans() {
    let lines = lines(20_000, 900);
    let (_dir, path) = common::input_of(text(&lines).as_bytes());
    let expected = expected(&lines);
    for isolation in ["process", "thread"] {
        for (buffer, combine) in [("auto", "both"), ("hash", "map"), ("array", "reduce"), ("array", "off")] {
            for workers in ["1", "3"] {
                let settings =
                    [("isolation", isolation), ("buffer", buffer), ("combine", combine), ("workers", workers)];
                compare(&path, &expected, &settings);
            }
        }
    }
    // By length, in an array with a place for each.
    let mut by_length = BTreeMap::<u8, BTreeSet<u8>>::new();
    for (word, number) in &lines {
        by_length.entry(word.len() as u8).or_default().insert((number % 100) as u8);
    }
    for buffer in [Buffer::Dense, Buffer::Hash, Buffer::Array] {
        let combine = if buffer == Buffer::Array { Combining::Reduce } else { Combining::Both };
        let (found, _) = job(&ByLength, &path).buffer(buffer).combine(combine).workers(2).run().expect("the job runs");
        let found: BTreeMap<u8, _> = found.iter().map(|(length, seen)| (length, digits(seen))).collect();
        assert_eq!(found, by_length, "{buffer:?}");
    }
}

fn many_keys() {
    // More keys than the table holds, so few of them repeat in it that pairs bypass it.
    let lines = lines(300_000, 250_000);
    let (_dir, path) = common::input_of(text(&lines).as_bytes());
    let expected = expected(&lines);
    let settings = [("split-bytes", "1MiB"), ("page-bytes", "32KiB"), ("workers", "2"), ("memory", "64MiB")];
    compare(&path, &expected, &settings[..3]);
    compare(&path, &expected, &settings);
}

fn rounded() {
    let lines = lines(20_000, 50);
    let (_dir, path) = common::input_of(text(&lines).as_bytes());
    let sums = |workers: usize, isolation: Isolation| -> Vec<(Vec<u8>, u64)> {
        let (found, _) =
            job(&TOTALS, &path).deterministic(true).workers(workers).isolation(isolation).run().expect("the job runs");
        found.iter().map(|(word, total)| (word.to_vec(), total.sum.to_bits())).collect()
    };
    let one = sums(1, Isolation::Process);
    for (word, bits) in &one {
        let exact: f64 = lines
            .iter()
            .filter(|(name, _)| name.as_bytes() == word)
            .map(|(_, number)| 1.0 / (f64::from(*number) + 1.0))
            .sum();
        assert!((f64::from_bits(*bits) - exact).abs() < 1e-9 * exact, "{word:?}");
    }
    for workers in [2, 5] {
        assert_eq!(sums(workers, Isolation::Process), one, "{workers} workers");
    }
    assert_eq!(sums(3, Isolation::Thread), one);
}

/// Each worker dies at its first, second, third ... moment of each kind, until it no longer reaches it.
fn deaths() {
    let lines = lines(1500, 200);
    let (_dir, path) = common::input_of(text(&lines).as_bytes());
    let expected = expected(&lines);
    let slow: ByWord<Digits> = ByWord(std::marker::PhantomData, Duration::from_micros(300));
    let mut died_at = Vec::new();
    for (separate, worker) in [(false, 1), (true, 1), (true, 3)] {
        for moment in MOMENTS {
            let mut survived = 0;
            for nth in 1.. {
                let mut job = job(&slow, &path).buffer(Buffer::Hash).die_at(worker, moment, nth);
                job = if separate { job.map_workers(2).reduce_workers(2) } else { job.workers(2) };
                let (found, summary) = job.run().expect("somebody takes its place");
                let found: BTreeMap<String, _> = found.iter().map(|(word, d)| (utf8(word), digits(d))).collect();
                assert!(
                    expected.iter().map(|(word, s)| (word, &s.4)).eq(&found),
                    "worker {worker} at its {nth}. {moment:?}"
                );
                died_at.extend(summary.deaths.iter().map(|_| moment));
                // Chance decides which worker gets which task, so a single survival proves nothing.
                survived = if summary.deaths.is_empty() { survived + 1 } else { 0 };
                if survived == 2 {
                    break;
                }
            }
        }
    }
    for moment in [Moment::Claimed, Moment::Sent, Moment::Received, Moment::Flushed, Moment::Committed] {
        assert!(died_at.contains(&moment), "nobody died at {moment:?}");
    }
}

fn set_aside() {
    let lines = lines(3000, 100);
    let expected = expected(&lines);
    // A bad line in the middle, and one at the end.
    let mut content = text(&lines[..1500]);
    content += "no-number\n";
    content += &text(&lines[1500..]);
    content += "nor-here\n";
    let (_dir, path) = common::input_of(content.as_bytes());
    compare(&path, &expected, &[("workers", "2"), ("skip-bad-records", "2")]);
    let refused = job(&STATISTICS, &path).workers(2).run().map(drop).expect_err("two lines have no number").to_string();
    assert!(refused.contains("no number"), "{refused}");
}

/// A key that is checked, as those of programs are.
#[derive(Clone, Copy, Debug, Default, Datum, Key)]
struct Place {
    row: u16,
    column: u8,
}

/// Adds even numbers, and emits odd ones.
struct Mixed;

impl MapReduce for Mixed {
    type Key = Place;
    type Value = Statistic;

    fn combiner(&self) -> Option<impl Fn(Statistic, Statistic) -> Statistic> {
        Some(Statistic::merged)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Place, Statistic>) -> Result<(), ProgramError> {
        for line in str::from_utf8(chunk.bytes())?.lines() {
            let (word, number) = line.split_once(' ').ok_or_else(|| ProgramError::new("no number"))?;
            let (place, number) = (Place { row: word.len() as u16, column: 7 }, number.parse::<u32>()?);
            if number.is_multiple_of(2) {
                out.add(place, number);
            } else {
                let mut one = Statistic::default();
                <Statistic as Aggregate>::add(&mut one, number);
                out.emit(place, one);
            }
        }
        Ok(())
    }
}

fn mixed() {
    let lines = lines(5000, 300);
    let (_dir, path) = common::input_of((text(&lines) + "no-number\n").as_bytes());
    let by_length = |(word, number): &(String, u32)| (format!("{:02}", word.len()), *number);
    let expected = expected(&lines.iter().map(by_length).collect::<Vec<_>>());
    let expected: BTreeMap<String, _> = expected.iter().map(|(row, s)| (row.clone(), (s.0, s.1, s.2, s.3))).collect();
    for buffer in [Buffer::Hash, Buffer::Array] {
        let combine = if buffer == Buffer::Array { Combining::Reduce } else { Combining::Both };
        let job = job(&Mixed, &path).workers(2).buffer(buffer).combine(combine).skip_bad_records(1);
        let (found, _) = job.run().expect("the job runs");
        let numbers = |s: Statistic| (s.count, s.sum, !s.not_least, s.most);
        let found: BTreeMap<String, _> =
            found.iter().map(|(place, s)| (format!("{:02}", place.row), numbers(s))).collect();
        assert_eq!(found, expected, "{buffer:?}");
    }
}

/// The number of lines.
#[derive(Clone, Copy, Debug, Default, Datum)]
struct Count {
    count: u64,
}

impl Aggregate for Count {
    type Item = ();

    fn add(count: &mut Count, (): ()) {
        count.count += 1;
    }

    fn merge(count: &mut Count, other: Count) {
        count.count += other.count;
    }
}

struct Lines;

impl MapReduce for Lines {
    type Key = ();
    type Value = Count;

    fn combiner(&self) -> Option<impl Fn(Count, Count) -> Count> {
        Some(Count::merged)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<(), Count>) -> Result<(), ProgramError> {
        for line in chunk.lines() {
            if line == b"no-number" {
                return Err(ProgramError::new("no number"));
            }
            out.add((), ());
        }
        Ok(())
    }
}

/// Items for one key, of no bytes, were once lost where a record may be set aside: there was nothing to read again.
fn without_bytes() {
    let lines = lines(3000, 10);
    let (_dir, path) = common::input_of((text(&lines) + "no-number\n").as_bytes());
    let (found, _) = job(&Lines, &path).workers(2).skip_bad_records(1).run().expect("the job runs");
    assert_eq!(found.get(()).map(|count| count.count), Some(3000));
    let (_dir, path) = common::input_of(text(&lines).as_bytes());
    for nth in 1..5 {
        let job = job(&Lines, &path).workers(2).die_at(1, Moment::Claimed, nth);
        let (found, _) = job.run().expect("somebody takes its place");
        assert_eq!(found.get(()).map(|count| count.count), Some(3000));
    }
}

/// The numbers themselves, which must be sorted to know their width, as the centroids of a digest must be.
#[derive(Debug)]
enum Sorted {}

static WIDTHS: AtomicU64 = AtomicU64::new(0);

impl Datum for Sorted {
    type Ref<'a> = &'a [u8];
    type Owned = Vec<u8>;
    const WIDTH: Option<usize> = None;
    const EXACT: bool = true;

    fn width(value: &[u8]) -> usize {
        WIDTHS.fetch_add(1, Ordering::Relaxed);
        value.len()
    }

    fn write(value: &[u8], to: &mut [u8]) {
        to.copy_from_slice(value);
        to.as_chunks_mut::<4>().0.sort_unstable();
    }

    fn read(from: &[u8]) -> &[u8] {
        from
    }

    fn own(value: &[u8]) -> Vec<u8> {
        value.to_vec()
    }

    fn lend(value: &Vec<u8>) -> &[u8] {
        value
    }

    fn compare(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        let sorted = |value: &[u8]| {
            let mut to = vec![0; value.len()];
            Sorted::write(value, &mut to);
            to
        };
        sorted(a).cmp(&sorted(b))
    }

    fn prefix(_: &[u8]) -> u64 {
        0
    }

    fn to_text(value: &[u8], to: &mut Vec<u8>) {
        to.extend_from_slice(value);
    }
}

impl Aggregate for Sorted {
    type Item = u32;

    fn add(sorted: &mut Vec<u8>, number: u32) {
        sorted.extend(number.to_be_bytes());
    }

    fn merge(sorted: &mut Vec<u8>, other: Vec<u8>) {
        sorted.extend(other);
    }
}

/// The median of 50,000 numbers of one key took 5.9 s instead of 6 ms: the digest was sorted twice for each of them.
fn widths() {
    const NUMBERS: u32 = 300_000;
    let lines = lines(NUMBERS, 1);
    let (_dir, path) = common::input_of(text(&lines).as_bytes());
    let sorted: ByWord<Sorted> = ByWord(std::marker::PhantomData, Duration::ZERO);
    // Threads, because workers that are processes count for themselves.
    let (found, _) = job(&sorted, &path).workers(2).isolation(Isolation::Thread).run().expect("the job runs");
    let mut expected: Vec<[u8; 4]> = lines.iter().map(|(_, number)| number.to_be_bytes()).collect();
    expected.sort_unstable();
    let mut numbers: Vec<[u8; 4]> = found.iter().flat_map(|(_, numbers)| numbers.as_chunks::<4>().0.to_vec()).collect();
    numbers.sort_unstable();
    assert!(numbers == expected, "{} numbers of {NUMBERS}", numbers.len());
    assert!(WIDTHS.load(Ordering::Relaxed) < u64::from(NUMBERS) / 100, "{WIDTHS:?}");
}

/// Takes no number with 13 at its end.
#[derive(Clone, Copy, Debug, Default, Datum)]
struct Careful {
    count: u64,
}

impl Aggregate for Careful {
    type Item = u32;

    fn add(count: &mut Careful, number: u32) {
        assert!(number % 100 != 13, "no such number");
        count.count += 1;
    }

    fn merge(count: &mut Careful, other: Careful) {
        count.count += other.count;
    }
}

fn panics() {
    let lines: Vec<(String, u32)> = lines(2000, 40).into_iter().filter(|(_, number)| number % 100 != 13).collect();
    let mut content = text(&lines[..700]);
    content += "bad 113\n";
    content += &text(&lines[700..]);
    let (_dir, path) = common::input_of(content.as_bytes());
    let careful: ByWord<Careful> = ByWord(std::marker::PhantomData, Duration::ZERO);
    let (found, summary) = job(&careful, &path).workers(2).skip_bad_records(1).run().expect("one is set aside");
    assert_eq!(found.iter().map(|(_, count)| count.count).sum::<u64>(), lines.len() as u64);
    let causes: Vec<_> = summary.bad_records.iter().map(|bad| (&bad.record[..], &bad.cause[..])).collect();
    assert!(matches!(&causes[..], [(b"bad 113", cause)] if cause.contains("no such number")), "{causes:?}");
}

/// Adds the last digits of each word's digits, again and again, to the same word.
struct Again;

impl MapReduce for Again {
    type Key = Bytes;
    type Value = Digits;

    fn combiner(&self) -> Option<impl Fn(Digits, Digits) -> Digits> {
        Some(Digits::merged)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, Digits>) -> Result<(), ProgramError> {
        DIGITS.map(chunk, out)
    }

    fn map_pairs(
        &self,
        pairs: &Pairs<'_, Bytes, Digits>,
        out: &mut impl Emit<Bytes, Digits>,
    ) -> Result<(), ProgramError> {
        for (word, seen) in pairs.iter() {
            digits(seen).into_iter().for_each(|digit| out.add(word, u32::from(digit) * 7));
        }
        Ok(())
    }
}

fn steps() {
    let lines = lines(2000, 60);
    let (_dir, path) = common::input_of(text(&lines).as_bytes());
    let mut found = BTreeMap::new();
    let outcome = job(&Again, &path).workers(2).iterate(&[], |step| {
        found.clear();
        step.for_each(|word, seen| drop(found.insert(utf8(word), digits(seen))));
        if step.number() < 2 { Next::Pairs } else { Next::Stop }
    });
    outcome.expect("the job runs");
    let mut expected: BTreeMap<String, BTreeSet<u8>> =
        expected(&lines).into_iter().map(|(word, found)| (word, found.4)).collect();
    for _ in 0..2 {
        for seen in expected.values_mut() {
            *seen = seen.iter().map(|digit| (u32::from(*digit) * 7 % 100) as u8).collect();
        }
    }
    assert_eq!(found, expected);
}

type All = (Numbers, ApproxQuantiles, Top<f64, 4>);

/// Adds the number of each line to three aggregates of its word.
struct Library;

impl MapReduce for Library {
    type Key = Bytes;
    type Value = All;

    fn combiner(&self) -> Option<impl Fn(<All as Datum>::Owned, <All as Datum>::Owned) -> <All as Datum>::Owned> {
        Some(All::merged)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, All>) -> Result<(), ProgramError> {
        for line in str::from_utf8(chunk.bytes())?.lines() {
            let (word, number) = line.split_once(' ').ok_or_else(|| ProgramError::new("no number"))?;
            out.add(word.as_bytes(), number.parse()?);
        }
        Ok(())
    }
}

/// Adds the last four digits of each line to a set of those of its word.
struct Endings;

impl MapReduce for Endings {
    type Key = Bytes;
    type Value = ApproxDistinct;

    fn combiner(&self) -> Option<impl Fn(ApproxDistinct, ApproxDistinct) -> ApproxDistinct> {
        Some(ApproxDistinct::merged)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, ApproxDistinct>) -> Result<(), ProgramError> {
        for line in str::from_utf8(chunk.bytes())?.lines() {
            let word = line.split(' ').next().expect("a word");
            out.add(word.as_bytes(), &line.as_bytes()[line.len().saturating_sub(4)..]);
        }
        Ok(())
    }
}

/// Lets the second worker die at this moment.
fn dying<J: MapReduce>(job: Job<'_, J>, moment: Option<Moment>) -> Job<'_, J> {
    match moment {
        Some(moment) => job.die_at(1, moment, 2),
        None => job,
    }
}

fn library() {
    for words in [3, 900] {
        let lines = lines(12_000, words);
        let (_dir, path) = common::input_of(text(&lines).as_bytes());
        let mut sorted = BTreeMap::<String, Vec<f64>>::new();
        let mut endings = BTreeMap::<String, BTreeSet<String>>::new();
        for (word, number) in &lines {
            sorted.entry(word.clone()).or_default().push(f64::from(*number));
            let line = format!("{word} {number}");
            endings.entry(word.clone()).or_default().insert(line[line.len() - 4..].to_owned());
        }
        sorted.values_mut().for_each(|numbers| numbers.sort_by(f64::total_cmp));
        for (workers, moment) in [(1, None), (3, None), (3, Some(Moment::Flushed)), (2, Some(Moment::Received))] {
            let (found, _) = dying(job(&Library, &path).workers(workers), moment).run().expect("the job runs");
            assert_eq!(found.len(), sorted.len());
            for (word, (found, digest, top)) in &found {
                let numbers = &sorted[&utf8(word)];
                let (count, sum) = (numbers.len() as f64, numbers.iter().sum::<f64>());
                let squares = numbers.iter().map(|number| (number - sum / count).powi(2)).sum::<f64>();
                assert_eq!((found.count() as f64, found.sum(), digest.count()), (count, sum, found.count()));
                assert!((found.variance().expect("numbers") * count - squares).abs() <= 1e-9 * squares);
                assert_eq!((found.least(), found.greatest()), (numbers.first().copied(), numbers.last().copied()));
                assert!(top.iter().eq(numbers.iter().rev().take(4).copied()), "{top:?}");
                let shares = [0.0, 0.25, 0.5, 0.9, 1.0];
                for (share, number) in shares.iter().zip(digest.quantiles(&shares).expect("numbers")) {
                    let rank = numbers.partition_point(|other| *other <= number) as f64 / count;
                    assert!((rank - share).abs() <= 0.01 + 1.0 / count, "{number} for {share} of {count}, at {rank}");
                }
            }
            let (found, _) = dying(job(&Endings, &path).workers(workers), moment).run().expect("the job runs");
            assert_eq!(found.len(), endings.len());
            for (word, found) in &found {
                let endings = &endings[&utf8(word)];
                let mut alone = ApproxDistinct::default();
                endings.iter().for_each(|ending| ApproxDistinct::add(&mut alone, ending.as_bytes()));
                assert_eq!(ApproxDistinct::own(found), alone, "the order does not matter");
                let off = (found.estimate() - endings.len() as f64).abs();
                assert!(off <= (0.065 * endings.len() as f64).max(1.0), "{} for {}", found.estimate(), endings.len());
            }
        }
    }
}

/// Quantiles depend on the order of numbers, which a deterministic job keeps.
fn same_quantiles() {
    let lines = lines(20_000, 7);
    let (_dir, path) = common::input_of(text(&lines).as_bytes());
    let written = |workers: usize, isolation: Isolation| -> Vec<Vec<u8>> {
        let job = job(&Library, &path).deterministic(true).workers(workers).isolation(isolation);
        let (found, _) = job.run().expect("the job runs");
        let write = |all| {
            let mut bytes = vec![0; All::width(all)];
            All::write(all, &mut bytes);
            bytes
        };
        found.iter().map(|(_, all)| write(all)).collect()
    };
    let one = written(1, Isolation::Process);
    for workers in [2, 5] {
        assert!(written(workers, Isolation::Process) == one, "{workers} workers");
    }
    assert!(written(3, Isolation::Thread) == one, "threads");
}
