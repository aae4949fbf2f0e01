//! User-defined types, and values of any width: every plan gives the result of ten sequential lines, or a clear error.

use std::cell::Cell;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

use gristmill::keys::Short;
use gristmill::options::{Buffer, Combining, Exchange};
use gristmill::stats::{Count, Counters};
use gristmill::{
    Bytes, Chunk, Datum, Emit, Input, Isolation, Job, Key, MapReduce, Next, Order, Pairs, ProgramError, Records,
};

use crate::common::{Random, least_memory};

/// Ways in which the types of these tests break their contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// No key claims to be short.
    NeverShort,
    /// All keys claim to be short, with the same bytes.
    AlwaysShort,
    /// The width differs from the declared one.
    Width,
    Equal,
    Compare,
    OneSided,
    Prefix,
    Write,
    Read,
    Own,
}

thread_local! {
    /// Set before a job starts; its workers are forks.
    static WRONG: Cell<Wrong> = const { Cell::new(Wrong::Nothing) };
}

fn wrong() -> Wrong {
    WRONG.get()
}

/// Byte strings of `W` bytes, or of any length if `W` is 0, that break their contract.
#[derive(Debug)]
enum Odd<const W: usize> {}

impl<const W: usize> Datum for Odd<W> {
    type Ref<'a> = &'a [u8];
    type Owned = Vec<u8>;
    const WIDTH: Option<usize> = if W > 0 { Some(W) } else { None };

    fn width(value: &[u8]) -> usize {
        if wrong() == Wrong::Width { 3 } else { value.len() }
    }

    fn write(value: &[u8], to: &mut [u8]) {
        let bytes = if wrong() == Wrong::Write { value.len() - 1 } else { value.len() };
        to[..bytes].copy_from_slice(&value[..bytes]);
    }

    fn read(from: &[u8]) -> &[u8] {
        if wrong() == Wrong::Read { &[b'x'; W] } else { from }
    }

    fn own(value: &[u8]) -> Vec<u8> {
        if wrong() == Wrong::Own { vec![b'x'; W] } else { value.to_vec() }
    }

    fn lend(value: &Vec<u8>) -> &[u8] {
        value
    }

    fn compare(a: &[u8], b: &[u8]) -> Ordering {
        match wrong() {
            Wrong::Compare => a[..1].cmp(&b[..1]),
            Wrong::OneSided => a.cmp(b).then(Ordering::Less),
            _ => a.cmp(b),
        }
    }

    fn prefix(value: &[u8]) -> u64 {
        let prefix = Bytes::prefix(value);
        match wrong() {
            Wrong::Prefix => !prefix,
            Wrong::Compare | Wrong::OneSided => 0,
            _ => prefix,
        }
    }

    fn to_text(value: &[u8], to: &mut Vec<u8>) {
        to.extend_from_slice(value);
    }
}

impl<const W: usize> Key for Odd<W> {
    fn short(key: &[u8]) -> Option<Short> {
        match wrong() {
            Wrong::NeverShort => None,
            Wrong::AlwaysShort => Some(Short { words: [7, 7], len: 16 }),
            _ => Bytes::short(key),
        }
    }

    fn equal(a: &[u8], b: &[u8]) -> bool {
        wrong() == Wrong::Equal || a == b
    }
}

/// A key type that uses all defaults of [`Key`].
#[derive(Debug)]
enum Plain {}

impl Datum for Plain {
    type Ref<'a> = (u64, u64, u64);
    type Owned = (u64, u64, u64);
    const WIDTH: Option<usize> = Some(24);

    fn width(_: (u64, u64, u64)) -> usize {
        24
    }

    fn write((a, b, c): (u64, u64, u64), to: &mut [u8]) {
        to.copy_from_slice([a, b, c].map(u64::to_be_bytes).as_flattened());
    }

    fn read(from: &[u8]) -> (u64, u64, u64) {
        let word = |at: usize| u64::from_be_bytes(from[at..at + 8].try_into().expect("eight bytes"));
        (word(0), word(8), word(16))
    }

    fn own(value: (u64, u64, u64)) -> (u64, u64, u64) {
        value
    }

    fn lend(value: &(u64, u64, u64)) -> (u64, u64, u64) {
        *value
    }

    fn compare(a: (u64, u64, u64), b: (u64, u64, u64)) -> Ordering {
        a.cmp(&b)
    }

    fn prefix(value: (u64, u64, u64)) -> u64 {
        value.0
    }

    fn to_text(value: (u64, u64, u64), to: &mut Vec<u8>) {
        to.extend_from_slice(format!("{value:?}").as_bytes());
    }
}

impl Key for Plain {}

/// Counts the numbers modulo 1000 in the input, with keys that `K` makes from them.
struct Counted<K: Makes>(std::marker::PhantomData<fn() -> K>);

/// A key type, and its conversion from numbers.
trait Makes: 'static {
    type Key: Key;
    fn with(number: u16, take: &mut dyn FnMut(<Self::Key as Datum>::Ref<'_>));
}

impl<const W: usize> Makes for Odd<W> {
    type Key = Odd<W>;
    fn with(number: u16, take: &mut dyn FnMut(&[u8])) {
        // Without a fixed width, some keys are short and some are not.
        let width = if W > 0 { W } else { 4 + usize::from(number % 20) };
        take(format!("{number:04}{:0>width$}", "", width = width - 4).as_bytes());
    }
}

impl Makes for Plain {
    type Key = Plain;
    fn with(number: u16, take: &mut dyn FnMut((u64, u64, u64))) {
        take((u64::from(number / 100), u64::from(number), 7));
    }
}

/// A derived key whose fields are wider than a short key, some of variable width.
#[derive(Clone, Debug, Default, Datum, Key)]
#[datum(borrowed = VisitRef)]
struct Visit {
    day: Reverse<u16>,
    host: String,
    rank: Option<i32>,
}

impl Makes for Visit {
    type Key = Visit;
    fn with(number: u16, take: &mut dyn FnMut(VisitRef<'_>)) {
        let host = "x".repeat(usize::from(number % 30));
        take(VisitRef {
            day: Reverse(number / 7),
            host: &host,
            rank: (!number.is_multiple_of(7)).then_some(-i32::from(number % 7)),
        });
    }
}

/// A derived key that is seen by value.
#[derive(Clone, Copy, Debug, Default, Datum, Key)]
enum Place {
    #[default]
    Nowhere,
    At([i16; 2]),
    Far {
        distance: f64,
    },
}

impl Makes for Place {
    type Key = Place;
    fn with(number: u16, take: &mut dyn FnMut(Place)) {
        take(match number % 3 {
            0 if number == 0 => Place::Nowhere,
            1 => Place::At([number as i16, -1]),
            _ => Place::Far { distance: f64::from(number) - 300.5 },
        });
    }
}

/// A key of the engine's own types.
struct Tuple;

impl Makes for Tuple {
    type Key = (bool, String, char, u128);
    fn with(number: u16, take: &mut dyn FnMut((bool, &str, char, u128))) {
        let text = (number % 100).to_string();
        take((number.is_multiple_of(2), &text, char::from(b'a' + (number % 5) as u8), u128::from(number) << 100));
    }
}

impl<K: Makes> MapReduce for Counted<K> {
    type Key = K::Key;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<K::Key, u64>) -> Result<(), ProgramError> {
        for number in chunk.bytes().as_chunks::<2>().0 {
            K::with(u16::from_le_bytes(*number) % 1000, &mut |key| out.emit(key, 1));
        }
        Ok(())
    }
}

const NUMBERS: usize = 60_000;

fn counted<K: Makes>() -> Counted<K> {
    Counted(std::marker::PhantomData)
}

fn job<'j, J: MapReduce>(program: &'j J, bytes: &[u8]) -> Job<'j, J> {
    let input = Input::bytes("numbers", bytes).expect("memory");
    Job::new(program, input).records(Records::Fixed(2)).page_bytes(4096).split_bytes(7000)
}

fn random_bytes() -> Vec<u8> {
    let mut random = Random(22);
    (0..NUMBERS / 4).flat_map(|_| random.next().to_le_bytes()).collect()
}

fn counts_rightly<K: Makes>() {
    let (program, bytes) = (counted::<K>(), random_bytes());
    let mut expected = BTreeMap::<Vec<u8>, u64>::new();
    for number in bytes.as_chunks::<2>().0 {
        K::with(u16::from_le_bytes(*number) % 1000, &mut |key| {
            let mut text = Vec::new();
            K::Key::to_text(key, &mut text);
            *expected.entry(text).or_default() += 1;
        });
    }
    for combine in [Combining::Both, Combining::Map, Combining::Reduce, Combining::Off] {
        for order in [Order::ByKey, Order::Unordered] {
            let job = || job(&program, &bytes).workers(2).combine(combine).order(order);
            // With the least memory, pairs that are not combined are spilled.
            for job in [job(), job().memory(least_memory(job())), job().deterministic(true)] {
                let (output, _) = job.run().expect("the job runs");
                let found: BTreeMap<Vec<u8>, u64> = output
                    .iter()
                    .map(|(key, count)| {
                        let mut text = Vec::new();
                        K::Key::to_text(key, &mut text);
                        (text, count)
                    })
                    .collect();
                let of = std::any::type_name::<K>();
                assert_eq!(output.len(), expected.len(), "{of} {combine:?}: a key came twice, or is missing");
                assert!(found == expected, "{of} {combine:?}: other keys or counts");
            }
        }
    }
}

pub fn own_keys() {
    // An eight-byte key type that called none of its keys short once gave garbage keys without an error, even in
    // release builds.
    for wrong in [Wrong::NeverShort, Wrong::AlwaysShort, Wrong::Width] {
        WRONG.set(wrong);
        counts_rightly::<Odd<8>>();
        counts_rightly::<Odd<24>>();
    }
    for wrong in [Wrong::NeverShort, Wrong::Nothing] {
        WRONG.set(wrong);
        counts_rightly::<Odd<0>>();
    }
    counts_rightly::<Plain>();
}

pub fn derived_keys() {
    counts_rightly::<Visit>();
    counts_rightly::<Place>();
    counts_rightly::<Tuple>();
}

fn sentence<K: Makes>(wrong: Wrong, change: impl Fn(Job<'_, Counted<K>>) -> Job<'_, Counted<K>>) -> String {
    WRONG.set(wrong);
    let program = counted::<K>();
    let outcome = change(job(&program, &random_bytes()).workers(2)).run();
    outcome.map_or_else(|why| why.to_string(), |_| "it gave an answer".to_owned())
}

pub fn broken_contracts() {
    // Types that could not be read back, or had no consistent order, once gave wrong results or obscure panics.
    for (wrong, method) in [
        (Wrong::Equal, "equal"),
        (Wrong::Compare, "compare"),
        (Wrong::OneSided, "compare"),
        (Wrong::Prefix, "prefix"),
        (Wrong::Write, "write"),
        (Wrong::Read, "read"),
        (Wrong::Own, "own"),
    ] {
        // Hide the messages of panicking workers on standard error.
        std::panic::set_hook(Box::new(|_| ()));
        let said =
            [sentence::<Odd<8>>(wrong, |job| job), sentence::<Odd<24>>(wrong, |job| job.combine(Combining::Off))];
        drop(std::panic::take_hook());
        for why in said {
            let expected = format!("breaks the contract of Datum: its {method} ");
            assert!(why.contains(&expected), "{method}: {why}");
        }
    }
}

/// The second bytes that occur with each first byte: as a sorted set, or the longest run of letters.
struct Sets<const LONGEST: bool>;

fn union(a: Vec<u8>, b: Vec<u8>) -> Vec<u8> {
    a.into_iter().chain(b).collect::<BTreeSet<u8>>().into_iter().collect()
}

fn longest(a: Vec<u8>, b: Vec<u8>) -> Vec<u8> {
    if (a.len(), &a) > (b.len(), &b) { a } else { b }
}

fn value_of(number: u16, is_longest: bool) -> Vec<u8> {
    let [key, other] = number.to_le_bytes();
    // Some values are larger than a page.
    let len = if number % 997 == 1 { 5000 + usize::from(other) } else { usize::from(other.wrapping_mul(key) % 50) };
    if is_longest { vec![b'a' + other % 26; len] } else { vec![other] }
}

impl<const LONGEST: bool> MapReduce for Sets<LONGEST> {
    type Key = u16;
    type Value = Bytes;

    fn keys(&self) -> Option<usize> {
        Some(256)
    }

    fn combiner(&self) -> Option<impl Fn(Vec<u8>, Vec<u8>) -> Vec<u8>> {
        Some(if LONGEST { longest } else { union })
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u16, Bytes>) -> Result<(), ProgramError> {
        for number in chunk.bytes().as_chunks::<2>().0 {
            let number = u16::from_le_bytes(*number);
            out.emit(number % 256, &value_of(number, LONGEST));
        }
        Ok(())
    }

    fn map_pairs(&self, pairs: &Pairs<'_, u16, Bytes>, out: &mut impl Emit<u16, Bytes>) -> Result<(), ProgramError> {
        pairs.iter().for_each(|(key, value)| out.emit(key / 2, value));
        Ok(())
    }
}

fn combines_rightly<const LONGEST: bool>() {
    let (program, bytes) = (Sets::<LONGEST>, random_bytes());
    let combine = program.combiner().expect("it combines");
    let mut expected = BTreeMap::<u16, Vec<u8>>::new();
    for number in bytes.as_chunks::<2>().0 {
        let number = u16::from_le_bytes(*number);
        let before = expected.remove(&(number % 256)).unwrap_or_default();
        expected.insert(number % 256, combine(before, value_of(number, LONGEST)));
    }
    let check = |job: Job<'_, Sets<LONGEST>>, what: &str| {
        let (output, summary) = job.run().unwrap_or_else(|why| panic!("{what}: {why}"));
        let found: Vec<(u16, Vec<u8>)> = output.iter().map(|(key, value)| (key, value.to_vec())).collect();
        assert!(found.iter().is_sorted_by_key(|pair| pair.0), "{what}: not in the order of keys");
        assert!(found.into_iter().eq(expected.clone()), "{what}: not the answer of ten sequential lines");
        Counters::sum(summary.workers.iter().map(|worker| &worker.counters))
    };
    let mut runs = 0;
    for (buffer, combine) in [
        (Buffer::Hash, Combining::Both),
        (Buffer::Dense, Combining::Both),
        (Buffer::Hash, Combining::Map),
        (Buffer::Array, Combining::Reduce),
        (Buffer::Array, Combining::Off),
    ] {
        for exchange in [Exchange::Pipelined, Exchange::Barrier] {
            let job = || job(&program, &bytes).buffer(buffer).combine(combine).exchange(exchange);
            check(job().workers(1), "one worker");
            check(job().map_workers(2).reduce_workers(1).isolation(Isolation::Thread), "threads");
            check(job().workers(3).deterministic(true), "deterministic");
            check(job().workers(2).combine_after(100), "combined early");
            let tight = job().workers(2).memory(least_memory(job().workers(2)));
            runs += check(tight, "least memory").get(Count::Runs);
        }
    }
    assert!(runs > 0 || !LONGEST, "nothing was spilled");
    // Stages of a checkpoint, which are merged at the end.
    let dir = tempfile::tempdir().expect("a folder");
    let every = std::time::Duration::from_millis(1);
    let path = dir.path().join("numbers");
    std::fs::write(&path, &bytes).expect("written");
    let from_file = Job::new(&program, Input::paths([&path])).records(Records::Fixed(2)).split_bytes(7000);
    check(from_file.workers(2).checkpoint(dir.path().join("c"), "sets", every), "checkpoint");
    // Steps, each of which halves the keys.
    let mut steps = Vec::new();
    let outcome = job(&program, &bytes).workers(2).iterate(&[], |step| {
        let mut pairs = BTreeMap::new();
        step.for_each(|key, value| assert!(pairs.insert(key, value.to_vec()).is_none(), "{key} came twice"));
        steps.push(pairs);
        if step.number() == 3 { Next::Stop } else { Next::Pairs }
    });
    outcome.expect("the steps are made");
    for pairs in steps {
        assert!(pairs == expected, "{} pairs in a step instead of {}", pairs.len(), expected.len());
        let mut halved = BTreeMap::<u16, Vec<u8>>::new();
        for (key, value) in expected {
            let before = halved.remove(&(key / 2)).unwrap_or_default();
            halved.insert(key / 2, combine(before, value));
        }
        expected = halved;
    }
}

pub fn values_of_any_width() {
    // A combiner on byte strings, although documented, once panicked as soon as a reducer met a key twice.
    combines_rightly::<false>();
    combines_rightly::<true>();
}

/// Emits one pair of 4 GiB of zeros, in memory that is never touched.
struct Huge {
    is_key: bool,
}

impl MapReduce for Huge {
    type Key = Bytes;
    type Value = Bytes;

    fn combiner(&self) -> Option<impl Fn(Vec<u8>, Vec<u8>) -> Vec<u8>> {
        Some(longest)
    }

    fn map(&self, _: &mut Chunk<'_>, out: &mut impl Emit<Bytes, Bytes>) -> Result<(), ProgramError> {
        let zeros = vec![0; 4 << 30];
        if self.is_key {
            out.emit(&zeros, b"")
        } else {
            out.emit(b"", &zeros)
        }
        Ok(())
    }
}

pub fn huge_pairs() {
    // Keys and values of 4 GiB and more were once silently cut to their length modulo 4 GiB.
    std::panic::set_hook(Box::new(|_| ()));
    for (is_key, buffer) in [(true, Buffer::Hash), (false, Buffer::Hash), (false, Buffer::Array)] {
        let program = Huge { is_key };
        let job = job(&program, b"ab").workers(1).buffer(buffer).retries(0);
        let why = job.run().map(|_| ()).expect_err("a pair that is too large").to_string();
        assert!(why.contains("a pair has at most 4294901759 (4 GiB)"), "{why}");
    }
}
