//! Checks of the contract of [`Datum`] and [`Key`], for types that are not the engine's own.
//!
//! A type that breaks its contract would silently give wrong results: one key read as another, one group cut in two. So
//! a sample of the pairs is checked as they are emitted, and streams in key order are checked as they are made. A
//! violation ends the task with a message that names it. The engine's own types are not checked.

use std::any::{TypeId, type_name};
use std::cmp::Ordering;

use crate::data::datum::{Datum, Key};
use crate::data::key::{self, width};
use crate::data::order::Order;

/// The first `LOOKED_AT_FIRST` pairs of each worker are checked, and then one in `ONE_OF`.
const LOOKED_AT_FIRST: u64 = 64;
const ONE_OF: u64 = 1024;

/// Checks pairs as they are emitted.
#[derive(Default)]
pub(crate) struct Contract {
    pairs: u64,
    /// The bytes of the pair that was checked last, and the type of its value: that of an item for an aggregate is
    /// another one.
    before: Option<([Vec<u8>; 2], TypeId)>,
}

impl Contract {
    /// Checks a pair, if it is in the sample.
    ///
    /// # Panics
    /// When its types break their contract.
    #[inline(always)]
    pub fn look<K: Key, V: Datum>(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) {
        if const { K::TRUSTED.0 && V::TRUSTED.0 } {
            return;
        }
        self.pairs += 1;
        if self.pairs <= LOOKED_AT_FIRST || self.pairs.is_multiple_of(ONE_OF) {
            self.look_at::<K, V>(key, value);
        }
    }

    #[cold]
    fn look_at<K: Key, V: Datum>(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) {
        let bytes = [travels::<K>(key), travels::<V>(value)];
        // 1. Compare the key with itself, written and read again.
        let again = K::read(&bytes[0]);
        require::<K>(K::equal(key, again), "equal", || format!("tells {key:?} from itself, written and read again"));
        // 2. Compare the pair with the one checked before.
        if let Some((before, kind)) = &self.before {
            let other = K::read(&before[0]);
            let order = ordered::<K>(key, other);
            let (is_same, names) = (bytes[0] == before[0], || format!("{key:?} and {other:?}"));
            require::<K>((order == Ordering::Equal) == is_same, "compare", || {
                let what = if is_same { "which are one key" } else { "which are written as different bytes" };
                format!("answers {order:?} for {}, {what}", names())
            });
            require::<K>(K::equal(key, other) == is_same, "equal", || {
                let what = if is_same { "are one key" } else { "are written as different bytes" };
                format!("answers {} for {}, which {what}", !is_same, names())
            });
            if *kind == TypeId::of::<V>() {
                ordered::<V>(value, V::read(&before[1]));
            }
        }
        self.before = Some((bytes, TypeId::of::<V>()));
    }
}

/// Checks the contract of a [`Datum`] for these values, and for each two of them. For tests of your own types: a job
/// checks only a sample of its pairs.
///
/// # Panics
/// When the type breaks its contract; the message names the method and the values.
pub fn check_datum<'v, D: Datum>(values: impl IntoIterator<Item = D::Ref<'v>>) {
    let written: Vec<Vec<u8>> = values.into_iter().map(travels::<D>).collect();
    let mut sorted: Vec<D::Ref<'_>> = written.iter().map(|bytes| D::read(bytes)).collect();
    // A sort may panic if the order is none.
    for a in &sorted {
        for b in &sorted {
            ordered::<D>(*a, *b);
        }
    }
    sorted.sort_by(|a, b| D::compare(*a, *b));
    for (at, a) in sorted.iter().enumerate() {
        for b in &sorted[at..] {
            let order = D::compare(*a, *b);
            require::<D>(order != Ordering::Greater, "compare", || {
                format!("answers {order:?} for {a:?} and {b:?}, although others between them are in ascending order")
            });
        }
    }
}

/// Checks the contract of a [`Key`] for these keys, as [`check_datum`] does, and that two keys are equal only if they
/// are written as the same bytes.
///
/// ```
/// gristmill::keys::check_key::<(String, u32)>([("frog", 1), ("pond", 1), ("frog", 2)]);
/// ```
///
/// # Panics
/// When the type breaks its contract; the message names the method and the keys.
pub fn check_key<'k, K: Key>(keys: impl IntoIterator<Item = K::Ref<'k>>) {
    let keys: Vec<K::Ref<'k>> = keys.into_iter().collect();
    check_datum::<K>(keys.iter().copied());
    let mut contract = Contract::default();
    for a in &keys {
        for b in &keys {
            contract.look_at::<K, ()>(*a, ());
            contract.look_at::<K, ()>(*b, ());
        }
    }
}

/// Returns the bytes of a value, after checking that writing, reading, owning and lending preserve it.
fn travels<D: Datum>(value: D::Ref<'_>) -> Vec<u8> {
    let bytes = width::<D>(value);
    let written = |value: D::Ref<'_>, filled_with: u8| {
        let mut to = vec![filled_with; bytes];
        D::write(value, &mut to);
        to
    };
    let first = written(value, 0);
    require::<D>(first == written(value, 0xff), "write", || {
        format!("does not write the same {bytes} bytes each time for {value:?}: it must fill all that it is given")
    });
    let read = D::read(&first);
    require::<D>(width::<D>(read) == bytes, "read", || {
        format!("makes {read:?}, of {} bytes, of the {bytes} bytes that were written for {value:?}", width::<D>(read))
    });
    require::<D>(written(read, 0) == first, "read", || {
        format!("makes {read:?} of what was written for {value:?}, and that is written as other bytes")
    });
    let own = D::own(value);
    let lent = D::lend(&own);
    require::<D>(width::<D>(lent) == bytes && written(lent, 0) == first, "own", || {
        format!("or lend makes {lent:?} of {value:?}, and that is written as other bytes")
    });
    let order = ordered::<D>(read, value);
    require::<D>(order == Ordering::Equal, "compare", || {
        format!("answers {order:?} for {value:?} and the same, written and read again")
    });
    first
}

/// Compares two values in both directions, and by their prefixes.
fn ordered<D: Datum>(a: D::Ref<'_>, b: D::Ref<'_>) -> Ordering {
    let order = D::compare(a, b);
    let reverse = D::compare(b, a);
    require::<D>(reverse == order.reverse(), "compare", || {
        format!("answers {order:?} for {a:?} and {b:?}, and {reverse:?} for {b:?} and {a:?}")
    });
    let prefixes = D::prefix(a).cmp(&D::prefix(b));
    require::<D>(prefixes == Ordering::Equal || prefixes == order, "prefix", || {
        format!("orders {a:?} and {b:?} as {prefixes:?}, and compare as {order:?}")
    });
    order
}

/// Checks a key that serves as an array index.
///
/// # Panics
/// When `at_place` gives another key for `place`.
#[inline(always)]
pub(crate) fn numbers<K: Key>(key: K::Ref<'_>, place: usize) {
    if const { K::TRUSTED.0 } {
        return;
    }
    let other = K::at_place(place);
    require::<K>(key::equal::<K>(key, other), "at_place", || {
        format!("makes {other:?} of place {place}, and that is the place of {key:?}")
    });
}

/// Checks the next key of a stream in strictly ascending key order.
///
/// # Panics
/// When the key `before` is not less than the next one.
#[inline(always)]
pub(crate) fn ascends<K: Key>(before: Option<&[u8]>, key: K::Ref<'_>) {
    if const { K::TRUSTED.0 } {
        return;
    }
    if let Some(before) = before.map(K::read) {
        let order = K::compare(before, key);
        require::<K>(order == Ordering::Less, "compare", || {
            format!("answers {order:?} for {before:?} and {key:?}, which followed each other in the order of keys")
        });
    }
}

/// Checks the order of a result.
#[derive(Default)]
pub(crate) struct InOrder {
    before: Option<[Vec<u8>; 2]>,
}

impl InOrder {
    /// Checks the next pair.
    ///
    /// # Panics
    /// When it sorts before the previous one.
    #[inline(always)]
    pub fn next<K: Key, V: Datum>(&mut self, order: Order, key: K::Ref<'_>, value: V::Ref<'_>) {
        if const { K::TRUSTED.0 && V::TRUSTED.0 } {
            return;
        }
        let [key_bytes, value_bytes] = self.before.get_or_insert_with(|| {
            let mut bytes = [Vec::new(), Vec::new()];
            write::<K>(key, &mut bytes[0]);
            write::<V>(value, &mut bytes[1]);
            bytes
        });
        let before = (K::read(key_bytes), V::read(value_bytes));
        if order.compare::<K, V>(before, (key, value)).is_gt() {
            panic!(
                "the types {} and {} break the contract of Datum: {before:?} came before {:?} in the result, and compare puts it behind. \
                 Let prefix and compare follow one order",
                type_name::<K>(),
                type_name::<V>(),
                (key, value)
            );
        }
        write::<K>(key, key_bytes);
        write::<V>(value, value_bytes);
    }
}

/// Writes a value into `to`, replacing its content.
fn write<D: Datum>(value: D::Ref<'_>, to: &mut Vec<u8>) {
    to.resize(width::<D>(value), 0);
    D::write(value, to);
}

#[inline]
fn require<D: Datum>(holds: bool, method: &str, what: impl FnOnce() -> String) {
    if !holds {
        broken(type_name::<D>(), method, &what());
    }
}

#[cold]
#[inline(never)]
fn broken(of: &str, method: &str, what: &str) -> ! {
    panic!("the type {of} breaks the contract of Datum: its {method} {what}")
}
