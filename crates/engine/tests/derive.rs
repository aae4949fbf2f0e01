//! Derived data are read as they were written, and ordered as `derive(Ord)` orders them.

use gristmill::keys::check_key;
use gristmill::{Datum, Key};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Datum, Key)]
struct Unit;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Datum, Key)]
struct Pair(i8, [u16; 2]);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Datum, Key)]
struct Nested {
    pair: Pair,
    letter: char,
    shape: Shape,
    unit: Unit,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Datum, Key)]
enum Shape {
    Circle {
        radius: u32,
    },
    #[default]
    Point,
    Box(i16, Option<Pair>),
}

/// More fields than a tuple may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Datum, Key)]
struct Wide {
    a: u8,
    b: i8,
    c: u16,
    d: i16,
    e: u32,
    f: i32,
    g: u64,
    h: i64,
    i: u128,
    j: i128,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Datum, Key)]
#[datum(borrowed = VisitRef)]
struct Visit {
    host: String,
    day: u16,
    path: Vec<u8>,
    is_first: bool,
}

/// Parameters of all kinds, and names that Rust reserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Datum, Key)]
struct Generic<A, B, const N: usize>
where
    A: PartialEq,
    [B; N]: Default,
{
    r#type: A,
    value: Option<B>,
    to: [B; N],
}

impl<A: PartialEq + Default, B: Default, const N: usize> Default for Generic<A, B, N>
where
    [B; N]: Default,
{
    fn default() -> Self {
        Generic { r#type: A::default(), value: None, to: Default::default() }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Datum, Key)]
enum OneOf<A, B> {
    #[default]
    None,
    A(A),
    Both {
        a: A,
        b: B,
    },
}

/// `width` is a method of the trait too.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Datum, Key)]
#[datum(borrowed = NamedRef)]
struct Named<A: PartialEq, B>
where
    B: PartialEq,
{
    width: A,
    r#type: B,
}

macro_rules! row {
    ($name:ident { $($field:ident: $type:ty),* }) => {
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Datum, Key)]
        struct $name { $($field: $type),* }
    };
}
row!(Made { a: u8, b: OneOf<u8, i16> });

fn pairs() -> impl Strategy<Value = Pair> {
    (any::<i8>(), any::<[u16; 2]>()).prop_map(|(a, b)| Pair(a % 2, b.map(|b| b % 3)))
}

fn shapes() -> impl Strategy<Value = Shape> {
    prop_oneof![
        (0..3u32).prop_map(|radius| Shape::Circle { radius }),
        Just(Shape::Point),
        (-2..2i16, prop::option::of(pairs())).prop_map(|(a, b)| Shape::Box(a, b)),
    ]
}

proptest! {
    #[test]
    fn structs_and_enums_are_ordered_as_in_rust(
        rows in prop::collection::vec((pairs(), prop::char::range('a', 'c'), shapes()), 1..10),
    ) {
        let rows: Vec<Nested> =
            rows.into_iter().map(|(pair, letter, shape)| Nested { pair, letter, shape, unit: Unit }).collect();
        check_key::<Nested>(rows.iter().copied());
        check_key::<Shape>(rows.iter().map(|row| row.shape));
        for a in &rows {
            for b in &rows {
                prop_assert_eq!(Nested::compare(*a, *b), a.cmp(b));
            }
        }
    }

    #[test]
    fn a_struct_may_have_more_fields_than_a_tuple(
        rows in prop::collection::vec(any::<(u8, i8, i64, u128, i128)>(), 1..10),
    ) {
        let wide = |(a, b, h, i, j)| Wide { a: a % 2, b: b % 2, h, i, j, ..Wide::default() };
        let rows: Vec<Wide> = rows.into_iter().map(wide).collect();
        check_key::<Wide>(rows.iter().copied());
        for a in &rows {
            for b in &rows {
                prop_assert_eq!(Wide::compare(*a, *b), a.cmp(b));
            }
        }
    }

    #[test]
    fn a_struct_with_text_is_seen_through_its_borrowed_fields(
        rows in prop::collection::vec(("[ab]{0,3}", 0..2u16, "[ab]{0,20}", any::<bool>()), 1..10),
    ) {
        let visit = |(host, day, path, is_first): (_, _, String, _)| Visit { host, day, path: path.into(), is_first };
        let rows: Vec<Visit> = rows.into_iter().map(visit).collect();
        check_key::<Visit>(rows.iter().map(Visit::lend));
        for a in &rows {
            let VisitRef { host, day, path, is_first } = Visit::lend(a);
            prop_assert_eq!((host, day, path, is_first), (&a.host[..], a.day, &a.path[..], a.is_first));
            prop_assert_eq!(&Visit::own(Visit::lend(a)), a);
            for b in &rows {
                prop_assert_eq!(Visit::compare(Visit::lend(a), Visit::lend(b)), a.cmp(b));
            }
        }
    }
}

#[test]
fn a_derived_type_is_written_as_its_documentation_says() {
    let mut written = [0xff; 9];
    Shape::write(Shape::Circle { radius: 258 }, &mut written);
    assert_eq!(written, [0, 2, 1, 0, 0, 0, 0, 0, 0]);
    Shape::write(Shape::Box(-1, Some(Pair(3, [4, 5]))), &mut written);
    assert_eq!(written, [2, 0xff, 0xff, 1, 3, 4, 0, 5, 0]);
    let mut text = Vec::new();
    Shape::to_text(Shape::Box(-1, None), &mut text);
    text.push(b'\n');
    Shape::to_text(Shape::Point, &mut text);
    assert_eq!(text, b"Box\t-1\t\nPoint");
}

#[test]
fn types_with_parameters_are_data() {
    // A user saw: derive(Datum) supports no generic parameters.
    let generic = |a, value, to| Generic::<i8, u16, 2> { r#type: a, value, to };
    let rows = [generic(-1, Some(3), [1, 2]), generic(1, None, [0, 0]), generic(-1, Some(3), [0, 9])];
    check_key::<Generic<i8, u16, 2>>(rows);
    let some = [OneOf::Both { a: 1, b: -1 }, OneOf::A(2), OneOf::None, OneOf::Both { a: 1, b: -2 }];
    check_key::<OneOf<u8, i16>>(some);
    check_key::<Made>(some.map(|b| Made { a: 1, b }));
    for a in some {
        for b in some {
            assert_eq!(OneOf::<u8, i16>::compare(a, b), a.cmp(&b));
        }
    }
    let named = ["b", "", "ab"].map(|width| Named { width: width.to_owned(), r#type: OneOf::A(7u8) });
    check_key::<Named<String, OneOf<u8, u8>>>(named.iter().map(Named::lend));
    for a in &named {
        assert_eq!(&Named::own(Named::lend(a)), a);
        for b in &named {
            assert_eq!(Named::compare(Named::lend(a), Named::lend(b)), a.cmp(b));
        }
    }
    assert_eq!(format!("{:?}", Named::lend(&named[0])), r#"NamedRef { width: "b", type: A(7) }"#);
}
