//! `#[derive(Datum)]` and `#[derive(Key)]` for the structs and enums of a program.
//!
//! Use them through the library [`gristmill`](https://docs.rs/gristmill), which exports them beside the traits of the same
//! names. Every type is written as a tuple of its fields, so the traits do the work, and the macros only name fields:
//!
//! ```text
//!  struct   as the tuple of its fields, in their order
//!  enum     the number of the variant, in 1 byte; the tuple of its fields; zeros up to the width of the widest variant
//! ```

use proc_macro::TokenStream;
use proc_macro2::{Ident, TokenStream as Tokens};
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Member, Result, Type, parse_macro_input};

/// The most fields of a tuple that is a `Datum`.
const TUPLE_FIELDS: usize = 8;

/// Makes a struct or an enum a [`Datum`](https://docs.rs/gristmill/latest/gristmill/trait.Datum.html).
///
/// The order of values is that of their fields, one after the other, as with `derive(PartialOrd)`; variants are ordered
/// as they are declared. The type must be `Clone` and `Default`.
///
/// A `Copy` type whose fields are numbers, `bool`, `char`, tuples, arrays and options of those, or other such types, is
/// seen as itself:
///
/// ```
/// use gristmill::{Datum, Key};
///
/// #[derive(Clone, Copy, Debug, Default, Datum, Key)]
/// struct Place {
///     row: u32,
///     column: i16,
/// }
///
/// #[derive(Clone, Copy, Debug, Default, Datum, Key)]
/// enum Shape {
///     #[default]
///     Point,
///     Circle { radius: f64 },
///     Box(u32, u32),
/// }
///
/// assert_eq!((Place::WIDTH, Shape::WIDTH), (Some(6), Some(9)));
/// gristmill::check_key::<Place>([Place { row: 1, column: -2 }, Place::default()]);
/// gristmill::check_key::<Shape>([Shape::Point, Shape::Circle { radius: 0.5 }, Shape::Box(1, 2)]);
/// ```
///
/// A struct with fields of variable width (`String`, `Vec<u8>`, and what is made of them) is seen through a struct of borrowed fields. The
/// attribute names it, and the macro declares it:
///
/// ```
/// use gristmill::{Datum, Key};
///
/// #[derive(Clone, Debug, Default, Datum, Key)]
/// #[datum(borrowed = VisitRef)]
/// struct Visit {
///     host: String,
///     day: u16,
/// }
///
/// let visits = [VisitRef { host: "frog.example", day: 2 }, VisitRef { host: "frog.example", day: 1 }];
/// gristmill::check_key::<Visit>(visits);
/// ```
///
/// Anything else does not compile:
///
/// ```compile_fail
/// #[derive(Clone, Copy, Debug, Default, gristmill::Datum)]
/// struct Visit<'v> {
///     host: &'v str, // a datum has no pointers
/// }
/// ```
///
/// ```compile_fail
/// #[derive(Clone, Debug, Default, gristmill::Datum)]
/// struct Visit {
///     host: String, // without #[datum(borrowed = VisitRef)]
/// }
/// ```
#[proc_macro_derive(Datum, attributes(datum))]
pub fn derive_datum(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    datum(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// Makes a [`Datum`](macro@Datum) a [`Key`](https://docs.rs/gristmill/latest/gristmill/trait.Key.html), by which pairs can
/// be grouped: two keys are the same if they are written as the same bytes.
#[proc_macro_derive(Key)]
pub fn derive_key(input: TokenStream) -> TokenStream {
    let DeriveInput { ident, .. } = parse_macro_input!(input as DeriveInput);
    quote!(#[automatically_derived] impl ::gristmill::Key for #ident {}).into()
}

fn datum(input: &DeriveInput) -> Result<Tokens> {
    if !input.generics.params.is_empty() {
        return Err(Error::new(input.generics.span(), "derive(Datum) supports no generic parameters"));
    }
    let borrowed = borrowed(&input.attrs)?;
    match (&input.data, borrowed) {
        (Data::Struct(data), None) => Ok(by_value(&input.ident, &Columns::of(&data.fields))),
        (Data::Struct(data), Some(view)) => by_view(input, &data.fields, &view),
        (Data::Enum(_), Some(view)) => Err(Error::new(view.span(), "only a struct has borrowed fields")),
        (Data::Enum(data), None) => {
            let limit = usize::from(u8::MAX) + 1;
            if data.variants.is_empty() || data.variants.len() > limit {
                let what = format!("derive(Datum) supports enums with 1 to {limit} variants");
                return Err(Error::new(input.ident.span(), what));
            }
            let variants: Vec<_> =
                data.variants.iter().map(|variant| (&variant.ident, Columns::of(&variant.fields))).collect();
            Ok(one_of(&input.ident, &variants))
        }
        (Data::Union(_), _) => Err(Error::new(input.ident.span(), "derive(Datum) supports structs and enums")),
    }
}

/// Returns the name in `#[datum(borrowed = NAME)]`.
fn borrowed(attributes: &[Attribute]) -> Result<Option<Ident>> {
    let mut name = None;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("datum")) {
        attribute.parse_nested_meta(|meta| match meta.path.is_ident("borrowed") {
            true => {
                name = Some(meta.value()?.parse()?);
                Ok(())
            }
            false => Err(meta.error("the only option is borrowed = NAME")),
        })?;
    }
    Ok(name)
}

/// The fields of a struct or a variant.
struct Columns {
    members: Vec<Member>,
    /// Variables for their values.
    values: Vec<Ident>,
    types: Vec<Type>,
}

impl Columns {
    fn of(fields: &Fields) -> Columns {
        Columns {
            members: fields.members().collect(),
            values: (0..fields.len()).map(|number| format_ident!("field_{number}")).collect(),
            types: fields.iter().map(|field| field.ty.clone()).collect(),
        }
    }

    /// Returns the type that the fields are written as: a tuple, whose last field is one more tuple if there are many.
    fn tuple(&self) -> Tokens {
        nested(&self.types.iter().map(|field| quote!(#field)).collect::<Vec<_>>())
    }

    /// Returns an expression, or a pattern, for the tuple of the values.
    fn value(&self) -> Tokens {
        nested(&self.values.iter().map(|field| quote!(#field)).collect::<Vec<_>>())
    }

    /// Returns the fields with their values, as in an expression or a pattern.
    fn fields(&self) -> Tokens {
        let Columns { members, values, .. } = self;
        quote!({ #(#members: #values),* })
    }
}

fn nested(fields: &[Tokens]) -> Tokens {
    match fields.len() {
        0 => quote!(()),
        1..=TUPLE_FIELDS => quote!((#(#fields,)*)),
        _ => {
            let (first, others) = fields.split_at(TUPLE_FIELDS - 1);
            let rest = nested(others);
            quote!((#(#first,)* #rest))
        }
    }
}

/// Implements `Datum` for a struct that is seen as itself.
fn by_value(name: &Ident, columns: &Columns) -> Tokens {
    let (tuple, fields, value) = (columns.tuple(), columns.fields(), columns.value());
    let opened = quote! { let #name #fields = value; };
    implementation(
        name,
        &quote!(#name),
        &tuple,
        &quote! {
            #[inline]
            fn own(value: #name) -> #name { value }
            #[inline]
            fn lend(value: &#name) -> #name { *value }
        },
        &quote!({ #opened #value }),
        &quote!({ let #value = value; #name #fields }),
    )
}

/// Implements `Datum` for a struct that is seen through the struct `view` of borrowed fields, and declares that.
fn by_view(input: &DeriveInput, fields: &Fields, view: &Ident) -> Result<Tokens> {
    if !matches!(fields, Fields::Named(_)) {
        return Err(Error::new(view.span(), "only a struct with named fields has borrowed fields"));
    }
    let (name, visibility) = (&input.ident, &input.vis);
    let columns = Columns::of(fields);
    let (tuple, listed, value) = (columns.tuple(), columns.fields(), columns.value());
    let Columns { members, types, .. } = &columns;
    let visibilities = fields.iter().map(|field| &field.vis);
    let documentation = format!("A borrowed [`{name}`].");
    let body = implementation(
        name,
        &quote!(#view<'a>),
        &tuple,
        &quote! {
            fn own(value: #view<'_>) -> #name {
                #name { #(#members: <#types as ::gristmill::Datum>::own(value.#members)),* }
            }
            #[inline]
            fn lend(value: &#name) -> #view<'_> {
                #view { #(#members: <#types as ::gristmill::Datum>::lend(&value.#members)),* }
            }
        },
        &quote!({ let #view #listed = value; #value }),
        &quote!({ let #value = value; #view #listed }),
    );
    Ok(quote! {
        #[doc = #documentation]
        #[derive(Clone, Copy, Debug)]
        #visibility struct #view<'a> {
            #(
                #[allow(missing_docs)]
                #visibilities #members: <#types as ::gristmill::Datum>::Ref<'a>,
            )*
        }
        #body
    })
}

/// Implements `Datum` through a tuple. `seen` is the type of `Ref<'a>`, `open` makes the tuple of `value`, and `close`
/// makes a value of the tuple `value`.
fn implementation(
    name: &Ident,
    seen: &Tokens,
    tuple: &Tokens,
    owned: &Tokens,
    open: &Tokens,
    close: &Tokens,
) -> Tokens {
    let datum = quote!(<#tuple as ::gristmill::Datum>);
    let opened = |variable: Ident| quote!({ let value = #variable; #open });
    let (a, b) = (opened(format_ident!("a")), opened(format_ident!("b")));
    quote! {
        #[automatically_derived]
        #[allow(clippy::unused_unit, clippy::let_unit_value, reason = "a type without fields is a unit")]
        impl ::gristmill::Datum for #name {
            type Ref<'a> = #seen;
            type Owned = #name;
            const WIDTH: ::core::option::Option<usize> = #datum::WIDTH;
            const EXACT: bool = #datum::EXACT;

            #[inline]
            fn width(value: Self::Ref<'_>) -> usize { #datum::width(#open) }
            #[inline]
            fn write(value: Self::Ref<'_>, to: &mut [u8]) { #datum::write(#open, to); }
            #[inline]
            fn read(from: &[u8]) -> Self::Ref<'_> { let value = #datum::read(from); #close }
            #owned
            fn compare(a: Self::Ref<'_>, b: Self::Ref<'_>) -> ::core::cmp::Ordering { #datum::compare(#a, #b) }
            fn prefix(value: Self::Ref<'_>) -> u64 { #datum::prefix(#open) }
            fn to_text(value: Self::Ref<'_>, to: &mut ::std::vec::Vec<u8>) { #datum::to_text(#open, to); }
        }
    }
}

/// Implements `Datum` for an enum, which is seen as itself.
fn one_of(name: &Ident, variants: &[(&Ident, Columns)]) -> Tokens {
    let numbers: Vec<u8> = (0..=u8::MAX).take(variants.len()).collect();
    let names: Vec<&Ident> = variants.iter().map(|(name, _)| *name).collect();
    let words: Vec<String> = names.iter().map(ToString::to_string).collect();
    let fields: Vec<Tokens> = variants.iter().map(|(_, columns)| columns.fields()).collect();
    let values: Vec<Tokens> = variants.iter().map(|(_, columns)| columns.value()).collect();
    let data: Vec<Tokens> = variants
        .iter()
        .map(|(_, columns)| {
            let tuple = columns.tuple();
            quote!(<#tuple as ::gristmill::Datum>)
        })
        .collect();
    quote! {
        #[automatically_derived]
        #[allow(clippy::unused_unit, clippy::let_unit_value, reason = "a type without fields is a unit")]
        impl ::gristmill::Datum for #name {
            type Ref<'a> = #name;
            type Owned = #name;
            const WIDTH: ::core::option::Option<usize> = {
                let mut widest = 0;
                #(
                    match #data::WIDTH {
                        ::core::option::Option::Some(bytes) => if bytes > widest { widest = bytes },
                        ::core::option::Option::None => panic!("the fields of an enum have a fixed width"),
                    }
                )*
                ::core::option::Option::Some(1 + widest)
            };
            const EXACT: bool = #(#data::EXACT)&&*;

            #[inline]
            fn width(_: #name) -> usize { const { <#name as ::gristmill::Datum>::WIDTH.unwrap() } }
            #[inline]
            fn write(value: #name, to: &mut [u8]) {
                match value {
                    #(#name::#names #fields => {
                        let end = const { 1 + #data::WIDTH.unwrap() };
                        to[0] = #numbers;
                        #data::write(#values, &mut to[1..end]);
                        to[end..].fill(0);
                    })*
                }
            }
            #[inline]
            fn read(from: &[u8]) -> #name {
                match from[0] {
                    #(#numbers => {
                        let #values = #data::read(&from[1..const { 1 + #data::WIDTH.unwrap() }]);
                        #name::#names #fields
                    })*
                    number => panic!("{} has no variant {number}", stringify!(#name)),
                }
            }
            #[inline]
            fn own(value: #name) -> #name { value }
            #[inline]
            fn lend(value: &#name) -> #name { *value }
            fn compare(a: #name, b: #name) -> ::core::cmp::Ordering {
                let number = |value| match value { #(#name::#names { .. } => #numbers,)* };
                let order = ::core::cmp::Ord::cmp(&number(a), &number(b));
                if order.is_ne() {
                    return order;
                }
                match a {
                    #(#name::#names #fields => {
                        let a = #values;
                        match b {
                            #name::#names #fields => #data::compare(a, #values),
                            #[allow(unreachable_patterns)]
                            _ => order,
                        }
                    })*
                }
            }
            fn prefix(value: #name) -> u64 {
                match value {
                    #(#name::#names #fields => ::core::primitive::u64::from(#numbers) << 56 | #data::prefix(#values) >> 8,)*
                }
            }
            fn to_text(value: #name, to: &mut ::std::vec::Vec<u8>) {
                match value {
                    #(#name::#names #fields => {
                        to.extend_from_slice(#words.as_bytes());
                        let before = to.len();
                        to.push(b'\t');
                        #data::to_text(#values, to);
                        if to.len() == before + 1 {
                            to.truncate(before);
                        }
                    })*
                }
            }
        }
    }
}
