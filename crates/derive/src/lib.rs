//! `#[derive(Datum)]` and `#[derive(Key)]` for the structs and enums of a program.
//!
//! Use them through the library [`gristmill`](https://docs.rs/gristmill), which exports them beside the traits of the
//! same names. Every type is written as a tuple of its fields, so the traits do the work, and the macros only name
//! fields:
//!
//! ```text
//!  struct   as the tuple of its fields, in their order
//!  enum     the number of the variant, in 1 byte; the tuple of its fields; zeros up to the width of the widest variant
//! ```

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

use proc_macro::TokenStream;
use proc_macro2::{Ident, TokenStream as Tokens};
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Field, Fields, GenericParam, Generics, Member, Result, Type};
use syn::{parse_macro_input, parse_quote};

/// The most fields of a tuple that is a `Datum`.
const TUPLE_FIELDS: usize = 8;

/// Makes a struct or an enum a [`Datum`](https://docs.rs/gristmill/latest/gristmill/trait.Datum.html).
///
/// Its documentation, with examples, is that of `gristmill::Datum`, which exports it.
#[proc_macro_derive(Datum, attributes(datum))]
pub fn derive_datum(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    datum(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// Makes a [`Datum`](macro@Datum) a [`Key`](https://docs.rs/gristmill/latest/gristmill/trait.Key.html), by which pairs
/// can be grouped: two keys are the same if they are written as the same bytes.
#[proc_macro_derive(Key)]
pub fn derive_key(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    key(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn key(input: &DeriveInput) -> Result<Tokens> {
    // An error in the generics is derive(Datum)'s to report, once.
    let Ok(mut generics) = bounded(input) else { return Ok(Tokens::new()) };
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(::gristmill::Key));
    }
    let (name, (parameters, arguments, conditions)) = (&input.ident, generics.split_for_impl());
    Ok(quote! {
        #[automatically_derived]
        impl #parameters ::gristmill::Key for #name #arguments #conditions {}
    })
}

fn datum(input: &DeriveInput) -> Result<Tokens> {
    let generics = bounded(input)?;
    only_on_the_type(&input.data)?;
    let Options { borrowed, is_exact } = Options::of(&input.attrs)?;
    let target = Implementor { name: &input.ident, generics: &generics, is_exact };
    match (&input.data, borrowed) {
        (Data::Struct(data), None) => {
            data.fields.iter().try_for_each(|field| fixed(field, "add #[datum(borrowed = NAME)] to the struct"))?;
            Ok(by_value(&target, &Columns::of(&data.fields)))
        }
        (Data::Struct(data), Some(view)) => by_view(input, &target, &data.fields, &view),
        (Data::Enum(_), Some(view)) => Err(Error::new(view.span(), "only a struct has borrowed fields")),
        (Data::Enum(data), None) => {
            let limit = usize::from(u8::MAX) + 1;
            if data.variants.is_empty() || data.variants.len() > limit {
                let what = format!("derive(Datum) supports enums with 1 to {limit} variants");
                return Err(Error::new(input.ident.span(), what));
            }
            let mut fields = data.variants.iter().flat_map(|variant| &variant.fields);
            fields.try_for_each(|field| fixed(field, "the fields of an enum have a fixed width"))?;
            let variants: Vec<_> =
                data.variants.iter().map(|variant| (&variant.ident, Columns::of(&variant.fields))).collect();
            Ok(one_of(&target, &variants))
        }
        (Data::Union(_), _) => Err(Error::new(input.ident.span(), "derive(Datum) supports structs and enums")),
    }
}

/// Returns the generic parameters of a type, with the bounds that `Datum` needs. As with `derive(Clone)`, each type
/// parameter is bounded, whatever the fields make of it.
fn bounded(input: &DeriveInput) -> Result<Generics> {
    let mut generics = input.generics.clone();
    let is_seen_as_itself = Options::of(&input.attrs)?.borrowed.is_none();
    for parameter in &mut generics.params {
        match parameter {
            GenericParam::Lifetime(lifetime) => {
                let what =
                    "derive(Datum) supports no lifetimes: a datum has no pointers, so own the data (String, Vec<u8>)";
                return Err(Error::new(lifetime.span(), what));
            }
            GenericParam::Type(parameter) => {
                let name = &parameter.ident;
                parameter.bounds.push(parse_quote!(::core::clone::Clone));
                parameter.bounds.push(parse_quote!(::core::default::Default));
                if is_seen_as_itself {
                    parameter.bounds.push(parse_quote!(::core::marker::Copy));
                    parameter.bounds.push(parse_quote!(::core::fmt::Debug));
                    parameter.bounds.push(parse_quote!(for<'a> ::gristmill::Datum<Ref<'a> = #name, Owned = #name>));
                } else {
                    parameter.bounds.push(parse_quote!(::gristmill::Datum<Owned = #name>));
                }
            }
            GenericParam::Const(_) => {}
        }
    }
    Ok(generics)
}

/// Rejects a field that plainly has no fixed width, with `remedy`. The compiler finds those behind an alias.
fn fixed(field: &Field, remedy: &str) -> Result<()> {
    let name = field.ident.as_ref().map_or(String::new(), |name| format!(" `{}`", name.unraw()));
    match &field.ty {
        Type::Reference(_) => Err(Error::new(field.span(), format!("field{name}: a datum has no pointers"))),
        Type::Path(path) => match path.path.segments.last() {
            Some(last) if last.ident == "String" || last.ident == "Vec" => {
                Err(Error::new(field.span(), format!("field{name} has a variable width: {remedy}")))
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Rejects the attribute on fields and variants, where it would say nothing.
fn only_on_the_type(data: &Data) -> Result<()> {
    let (fields, variants): (Vec<&Field>, Vec<&syn::Variant>) = match data {
        Data::Struct(data) => (data.fields.iter().collect(), Vec::new()),
        Data::Enum(data) => {
            (data.variants.iter().flat_map(|variant| &variant.fields).collect(), data.variants.iter().collect())
        }
        Data::Union(_) => (Vec::new(), Vec::new()),
    };
    let attributes = fields.iter().flat_map(|field| &field.attrs);
    let mut attributes = attributes.chain(variants.iter().flat_map(|variant| &variant.attrs));
    match attributes.find(|attribute| attribute.path().is_ident("datum")) {
        Some(attribute) => Err(Error::new(attribute.span(), "#[datum(...)] belongs in front of the type")),
        None => Ok(()),
    }
}

/// The type that an implementation is for.
struct Implementor<'t> {
    name: &'t Ident,
    /// With the bounds that `Datum` needs.
    generics: &'t Generics,
    /// Whether the order in which values are combined does not matter, whatever the fields say.
    is_exact: bool,
}

/// The options in `#[datum(borrowed = NAME, exact)]`.
#[derive(Default)]
struct Options {
    borrowed: Option<Ident>,
    is_exact: bool,
}

impl Options {
    fn of(attributes: &[Attribute]) -> Result<Options> {
        let mut options = Options::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("datum")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("borrowed") {
                    options.borrowed = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("exact") {
                    options.is_exact = true;
                } else {
                    return Err(meta.error("the options are borrowed = NAME and exact"));
                }
                Ok(())
            })?;
        }
        Ok(options)
    }
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
fn by_value(target: &Implementor, columns: &Columns) -> Tokens {
    let name = target.name;
    let (tuple, fields, value) = (columns.tuple(), columns.fields(), columns.value());
    let opened = quote! { let #name #fields = value; };
    implementation(
        target,
        &quote!(Self),
        &tuple,
        &quote! {
            #[inline]
            fn own(value: Self) -> Self { value }
            #[inline]
            fn lend(value: &Self) -> Self { *value }
        },
        &quote!({ #opened #value }),
        &quote!({ let #value = value; #name #fields }),
    )
}

/// Implements `Datum` for a struct that is seen through the struct `view` of borrowed fields, and declares that.
fn by_view(input: &DeriveInput, target: &Implementor, fields: &Fields, view: &Ident) -> Result<Tokens> {
    if !matches!(fields, Fields::Named(_)) {
        return Err(Error::new(view.span(), "only a struct with named fields has borrowed fields"));
    }
    let (name, visibility) = (&input.ident, &input.vis);
    let columns = Columns::of(fields);
    let (tuple, listed, value) = (columns.tuple(), columns.fields(), columns.value());
    let Columns { members, types, .. } = &columns;
    let visibilities = fields.iter().map(|field| &field.vis);
    let documentation = format!("A borrowed [`{}`].", name.unraw());
    let words: Vec<String> =
        fields.iter().flat_map(|field| &field.ident).map(|name| name.unraw().to_string()).collect();
    let view_word = view.unraw().to_string();
    // The view has the parameters of the struct behind one lifetime.
    let mut generics = target.generics.clone();
    generics.params.insert(0, parse_quote!('a));
    let (parameters, arguments, conditions) = generics.split_for_impl();
    let declared = generics.params.iter().map(|parameter| match parameter {
        GenericParam::Type(parameter) => {
            let (name, bounds) = (&parameter.ident, &parameter.bounds);
            quote!(#name: #bounds)
        }
        GenericParam::Const(parameter) => {
            let (name, of) = (&parameter.ident, &parameter.ty);
            quote!(const #name: #of)
        }
        GenericParam::Lifetime(lifetime) => quote!(#lifetime),
    });
    let body = implementation(
        target,
        &quote!(#view #arguments),
        &tuple,
        &quote! {
            fn own<'a>(value: #view #arguments) -> Self {
                #name { #(#members: <#types as ::gristmill::Datum>::own(value.#members)),* }
            }
            #[inline]
            fn lend<'a>(value: &'a Self) -> #view #arguments {
                #view { #(#members: <#types as ::gristmill::Datum>::lend(&value.#members)),* }
            }
        },
        &quote!({ let #view #listed = value; #value }),
        &quote!({ let #value = value; #view #listed }),
    );
    Ok(quote! {
        #[doc = #documentation]
        #visibility struct #view<#(#declared),*> #conditions {
            #(
                #[allow(missing_docs)]
                #visibilities #members: <#types as ::gristmill::Datum>::Ref<'a>,
            )*
        }
        // derive(Clone) would ask for type parameters that are Copy, and views of them are.
        #[automatically_derived]
        impl #parameters ::core::clone::Clone for #view #arguments #conditions {
            #[inline]
            fn clone(&self) -> Self { *self }
        }
        #[automatically_derived]
        impl #parameters ::core::marker::Copy for #view #arguments #conditions {}
        #[automatically_derived]
        impl #parameters ::core::fmt::Debug for #view #arguments #conditions {
            fn fmt(&self, to: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                to.debug_struct(#view_word)#(.field(#words, &self.#members))*.finish()
            }
        }
        #body
    })
}

/// Implements `Datum` through a tuple. `seen` is the type of `Ref<'a>`, `open` makes the tuple of `value`, and `close`
/// makes a value of the tuple `value`.
fn implementation(
    target: &Implementor,
    seen: &Tokens,
    tuple: &Tokens,
    owned: &Tokens,
    open: &Tokens,
    close: &Tokens,
) -> Tokens {
    let (name, (parameters, arguments, conditions)) = (target.name, target.generics.split_for_impl());
    let datum = quote!(<#tuple as ::gristmill::Datum>);
    let is_exact = if target.is_exact { quote!(true) } else { quote!(#datum::EXACT) };
    let opened = |variable: Ident| quote!({ let value = #variable; #open });
    let (a, b) = (opened(format_ident!("a")), opened(format_ident!("b")));
    quote! {
        #[automatically_derived]
        #[allow(clippy::unused_unit, clippy::let_unit_value, reason = "a type without fields is a unit")]
        impl #parameters ::gristmill::Datum for #name #arguments #conditions {
            type Ref<'a> = #seen;
            type Owned = Self;
            const WIDTH: ::core::option::Option<usize> = #datum::WIDTH;
            const EXACT: bool = #is_exact;

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

/// The variants of an enum, in columns.
struct Variants<'v> {
    numbers: Vec<u8>,
    names: Vec<&'v Ident>,
    /// The names as text.
    words: Vec<String>,
    /// The pattern of the fields of each.
    fields: Vec<Tokens>,
    /// The tuple of the fields, as a value.
    values: Vec<Tokens>,
    /// The tuple of the fields, as a type that is a `Datum`.
    data: Vec<Tokens>,
}

impl<'v> Variants<'v> {
    fn of(variants: &[(&'v Ident, Columns)]) -> Variants<'v> {
        let datum = |columns: &Columns| {
            let tuple = columns.tuple();
            quote!(<#tuple as ::gristmill::Datum>)
        };
        Variants {
            numbers: (0..=u8::MAX).take(variants.len()).collect(),
            names: variants.iter().map(|(name, _)| *name).collect(),
            words: variants.iter().map(|(name, _)| name.unraw().to_string()).collect(),
            fields: variants.iter().map(|(_, columns)| columns.fields()).collect(),
            values: variants.iter().map(|(_, columns)| columns.value()).collect(),
            data: variants.iter().map(|(_, columns)| datum(columns)).collect(),
        }
    }

    /// Writes the functions that give bytes and take them.
    fn coded(&self, name: &Ident) -> Tokens {
        let Variants { numbers, names, words, fields, values, data } = self;
        let word = name.unraw().to_string();
        quote! {
            #[inline]
            fn write(value: Self, to: &mut [u8]) {
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
            fn read(from: &[u8]) -> Self {
                match from[0] {
                    #(#numbers => {
                        let #values = #data::read(&from[1..const { 1 + #data::WIDTH.unwrap() }]);
                        #name::#names #fields
                    })*
                    number => panic!("{} has no variant {number}", #word),
                }
            }
            fn to_text(value: Self, to: &mut ::std::vec::Vec<u8>) {
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

    /// Writes the functions that order values.
    fn ordered(&self, name: &Ident) -> Tokens {
        let Variants { numbers, names, fields, values, data, .. } = self;
        quote! {
            fn compare(a: Self, b: Self) -> ::core::cmp::Ordering {
                let number = |value: Self| match value { #(#name::#names { .. } => #numbers,)* };
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
            fn prefix(value: Self) -> u64 {
                match value {
                    #(#name::#names #fields => ::core::primitive::u64::from(#numbers) << 56 | #data::prefix(#values) >> 8,)*
                }
            }
        }
    }
}

/// Implements `Datum` for an enum, which is seen as itself.
fn one_of(target: &Implementor, variants: &[(&Ident, Columns)]) -> Tokens {
    let (name, (parameters, arguments, conditions)) = (target.name, target.generics.split_for_impl());
    let variants = Variants::of(variants);
    let (coded, ordered, data) = (variants.coded(name), variants.ordered(name), &variants.data);
    let is_exact = if target.is_exact { quote!(true) } else { quote!(#(#data::EXACT)&&*) };
    quote! {
        #[automatically_derived]
        #[allow(clippy::unused_unit, clippy::let_unit_value, reason = "a type without fields is a unit")]
        impl #parameters ::gristmill::Datum for #name #arguments #conditions {
            type Ref<'a> = Self;
            type Owned = Self;
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
            const EXACT: bool = #is_exact;

            #coded
            #[inline]
            fn own(value: Self) -> Self { value }
            #[inline]
            fn lend(value: &Self) -> Self { *value }
            #ordered
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the one sentence that the compiler shows for a type.
    fn refusal(input: DeriveInput) -> String {
        datum(&input).expect_err("the type is refused").to_string()
    }

    #[test]
    fn a_refusal_is_one_sentence_that_names_the_field() {
        let text = refusal(parse_quote!(
            struct Visit {
                day: u16,
                host: String,
            }
        ));
        assert_eq!(text, "field `host` has a variable width: add #[datum(borrowed = NAME)] to the struct");
        let text = refusal(parse_quote!(
            enum Event {
                Start,
                Visit { r#type: Vec<u8> },
            }
        ));
        assert_eq!(text, "field `type` has a variable width: the fields of an enum have a fixed width");
        let text = refusal(parse_quote!(
            struct Visit {
                host: &'static str,
            }
        ));
        assert_eq!(text, "field `host`: a datum has no pointers");
        let text = refusal(parse_quote!(
            struct Visit<'v, T> {
                host: &'v T,
            }
        ));
        assert!(text.contains("supports no lifetimes"), "{text}");
        let text = refusal(parse_quote!(
            struct Visit {
                #[datum(exact)]
                day: f64,
            }
        ));
        assert_eq!(text, "#[datum(...)] belongs in front of the type");
        let text = refusal(parse_quote!(
            enum Never {}
        ));
        assert_eq!(text, "derive(Datum) supports enums with 1 to 256 variants");
    }

    #[test]
    fn an_enum_has_at_most_256_variants() {
        let with = |count: usize| -> DeriveInput {
            let names = (0..count).map(|number| format_ident!("V{number}"));
            parse_quote!(enum Many { #(#names),* })
        };
        assert!(datum(&with(256)).is_ok());
        assert_eq!(refusal(with(257)), "derive(Datum) supports enums with 1 to 256 variants");
    }
}
