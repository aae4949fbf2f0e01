//! The values of one key, as a reduce function sees them.

use std::ops::ControlFlow;

use crate::data::contract;
use crate::data::datum::{Datum, Key, Owned};
use crate::data::key;
use crate::failure::Failure;
use crate::spill::merge::{Flow, Merge};

/// The values of one key, in ascending order. They may exceed memory, so each is borrowed only until the next one is
/// requested:
///
/// ```
/// # use gristmill::{Bytes, Values};
/// # fn longest(values: &mut Values<'_, Bytes, Bytes>) -> usize {
/// let mut longest = 0;
/// while let Some(value) = values.next() {
///     longest = longest.max(value.len());
/// }
/// # longest
/// # }
/// ```
///
/// [`owned`](Values::owned) is an ordinary iterator. For numbers, which are copied anyway, it costs nothing extra:
///
/// ```
/// # use gristmill::{Bytes, Values};
/// # fn sum(values: &mut Values<'_, Bytes, u64>) -> u64 {
/// values.owned().sum()
/// # }
/// ```
pub struct Values<'v, K: Key, V: Datum> {
    from: From<'v, K, V>,
    /// Whether the current value has been returned.
    lent: bool,
}

enum From<'v, K: Key, V: Datum> {
    /// The pairs of this key at the front of a stream in key order.
    Stream { merge: &'v mut Merge<K, V>, key: &'v [u8] },
    /// A value that was already combined.
    One(&'v V::Owned),
}

impl<K: Key, V: Datum> Values<'_, K, V> {
    /// Returns the next value. (An `Iterator` could not return borrowed values.)
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> Option<V::Ref<'_>> {
        let lent = std::mem::replace(&mut self.lent, true);
        match &mut self.from {
            From::One(value) => (!lent).then(|| V::lend(value)),
            From::Stream { merge, key } => {
                if lent {
                    merge.advance();
                }
                match merge.pair() {
                    Some((next, value)) if key::equal::<K>(next, K::read(key)) => Some(value),
                    _ => {
                        // The current pair belongs to another key and must not be skipped.
                        self.lent = false;
                        None
                    }
                }
            }
        }
    }

    /// Iterates over owned values: numbers as they are, bytes copied.
    pub fn owned(&mut self) -> impl Iterator<Item = V::Owned> {
        std::iter::from_fn(|| self.next().map(V::own))
    }
}

/// Combines two values of one key into one.
pub(crate) type Combine<'c, V> = dyn Fn(Owned<V>, Owned<V>) -> Owned<V> + 'c;

/// Calls `visit` with each key of a stream in key order and its values, until it breaks. With `combine` there is one
/// value, combined from all values in ascending order.
pub(crate) fn for_each_key<K: Key, V: Datum>(
    mut merge: Merge<K, V>,
    combine: Option<&Combine<'_, V>>,
    visit: &mut dyn FnMut(K::Ref<'_>, &mut Values<'_, K, V>) -> Flow,
) -> Result<(), Failure> {
    let (mut key_bytes, mut is_first) = (Vec::new(), true);
    while let Some((key, _)) = merge.pair() {
        contract::ascends::<K>((!is_first).then_some(&key_bytes), key);
        is_first = false;
        key_bytes.resize(key::width::<K>(key), 0);
        K::write(key, &mut key_bytes);
        let key = K::read(&key_bytes);
        let mut values = Values { from: From::Stream { merge: &mut merge, key: &key_bytes }, lent: false };
        let flow = match combine {
            Some(combine) => {
                let combined = values.owned().reduce(combine).expect("a key has a value");
                visit(key, &mut Values { from: From::One(&combined), lent: false })
            }
            None => visit(key, &mut values),
        };
        if let ControlFlow::Break(outcome) = flow {
            return outcome;
        }
        // The reduce function may have left values unread.
        while values.next().is_some() {}
    }
    merge.failure()
}
