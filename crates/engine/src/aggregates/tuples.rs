//! Tuples of aggregates of the same item.

use crate::data::datum::{Datum, Owned};
use crate::program::aggregate::Aggregate;

macro_rules! tuple {
    ($first:ident $first_field:tt $(, $name:ident $field:tt)*) => {
        impl<$first: Aggregate $(, $name: Aggregate<Item = $first::Item>)*> Aggregate for ($first, $($name,)*) {
            type Item = $first::Item;

            fn add(aggregates: &mut Owned<Self>, item: <Self::Item as Datum>::Ref<'_>) {
                $first::add(&mut aggregates.$first_field, item);
                $($name::add(&mut aggregates.$field, item);)*
            }

            fn merge(aggregates: &mut Owned<Self>, other: Owned<Self>) {
                $first::merge(&mut aggregates.$first_field, other.$first_field);
                $($name::merge(&mut aggregates.$field, other.$field);)*
            }
        }
    };
}

tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
