//! What the engine takes for granted of keys and values, looked at where their types are not its own.
//!
//! A type that breaks its contract would give wrong answers in silence: a key that is read as another, a group that is cut in
//! two. So pairs are looked at as they are emitted, the first ones and then some, and streams in the order of keys are looked at
//! as they are made. What is found ends the task with a sentence. Of the engine's own types nothing is asked.

use std::any::type_name;
use std::cmp::Ordering;

use crate::data::datum::{Datum, Key};
use crate::data::key::{self, width};
use crate::data::order::Order;

/// So many pairs of each worker are looked at, and then one of so many.
const LOOKED_AT_FIRST: u64 = 64;
const ONE_OF: u64 = 1024;

/// Looks at pairs as they are emitted.
#[derive(Default)]
pub(crate) struct Contract {
    pairs: u64,
    /// The bytes of the pair that was looked at last.
    before: Option<[Vec<u8>; 2]>,
}

impl Contract {
    /// Looks at a pair, if it is its turn.
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
        // 1. A key and the same, read back.
        let again = K::read(&bytes[0]);
        require::<K>(K::equal(key, again), "equal", || format!("tells {key:?} from itself, written and read again"));
        // 2. Two keys.
        if let Some(before) = &self.before {
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
            ordered::<V>(value, V::read(&before[1]));
        }
        self.before = Some(bytes);
    }
}

/// The bytes of a value that stays what it is when it is written, read, owned and lent.
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

/// How two values compare, both ways and by their prefixes.
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

/// Looks at a key that numbers a place in an array.
///
/// # Panics
/// When the place is said to be another key's.
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

/// Looks at a stream in the order of keys, each of which is there once.
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

/// Looks at a result in order.
#[derive(Default)]
pub(crate) struct InOrder {
    before: Option<[Vec<u8>; 2]>,
}

impl InOrder {
    /// Takes note of the next pair.
    ///
    /// # Panics
    /// When it belongs before the last one.
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

/// Writes a value over what is in `to`.
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
