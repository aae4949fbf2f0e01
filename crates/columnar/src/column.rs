//! The columns of keys and values.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Float32Builder, Float64Builder, Int8Builder, Int16Builder, Int32Builder,
    Int64Builder, StringBuilder, UInt8Builder, UInt16Builder, UInt32Builder, UInt64Builder,
};
use arrow_schema::DataType;
use gristmill::{Bytes, Datum};

/// A type whose values are the fields of one column.
pub trait Column: Datum {
    /// Gathers the fields of a batch.
    type Builder: Default;

    /// Returns the type of the column.
    fn data_type() -> DataType;

    /// Returns whether fields may be null.
    fn is_nullable() -> bool {
        false
    }

    /// Appends a field.
    fn append(to: &mut Self::Builder, value: Self::Ref<'_>);

    /// Appends a field without a value, for `Option`.
    fn append_null(to: &mut Self::Builder);

    /// Returns the fields gathered so far, and begins anew.
    fn finish(builder: &mut Self::Builder) -> ArrayRef;
}

macro_rules! columns {
    ($($kind:ty: $builder:ident $data_type:ident,)*) => {
        $(impl Column for $kind {
            type Builder = $builder;

            fn data_type() -> DataType {
                DataType::$data_type
            }
            fn append(to: &mut $builder, value: Self::Ref<'_>) {
                to.append_value(value);
            }
            fn append_null(to: &mut $builder) {
                to.append_null();
            }
            fn finish(builder: &mut $builder) -> ArrayRef {
                Arc::new(builder.finish())
            }
        })*
    };
}

columns! {
    u8: UInt8Builder UInt8,
    u16: UInt16Builder UInt16,
    u32: UInt32Builder UInt32,
    u64: UInt64Builder UInt64,
    i8: Int8Builder Int8,
    i16: Int16Builder Int16,
    i32: Int32Builder Int32,
    i64: Int64Builder Int64,
    f32: Float32Builder Float32,
    f64: Float64Builder Float64,
    bool: BooleanBuilder Boolean,
    String: StringBuilder Utf8,
    Bytes: BinaryBuilder Binary,
    Vec<u8>: BinaryBuilder Binary,
}

impl<T: Column> Column for Option<T> {
    type Builder = T::Builder;

    fn data_type() -> DataType {
        T::data_type()
    }
    fn is_nullable() -> bool {
        true
    }
    fn append(to: &mut T::Builder, value: Self::Ref<'_>) {
        match value {
            Some(value) => T::append(to, value),
            None => T::append_null(to),
        }
    }
    fn append_null(to: &mut T::Builder) {
        T::append_null(to);
    }
    fn finish(builder: &mut T::Builder) -> ArrayRef {
        T::finish(builder)
    }
}

/// The columns of a key or a value: one for a [`Column`], none for `()`, and those of all fields for a tuple.
pub trait Columns: Datum {
    /// Gathers the fields of a batch.
    type Builders: Default;

    /// Appends the type of each column, and whether its fields may be null.
    fn types(to: &mut Vec<(DataType, bool)>);

    /// Appends a field to each column.
    fn append(to: &mut Self::Builders, value: Self::Ref<'_>);

    /// Appends the columns gathered so far, and begins anew.
    fn finish(builders: &mut Self::Builders, to: &mut Vec<ArrayRef>);
}

impl<T: Column> Columns for T {
    type Builders = T::Builder;

    fn types(to: &mut Vec<(DataType, bool)>) {
        to.push((T::data_type(), T::is_nullable()));
    }
    fn append(to: &mut T::Builder, value: T::Ref<'_>) {
        <T as Column>::append(to, value);
    }
    fn finish(builders: &mut T::Builder, to: &mut Vec<ArrayRef>) {
        to.push(<T as Column>::finish(builders));
    }
}

impl Columns for () {
    type Builders = ();

    fn types(_: &mut Vec<(DataType, bool)>) {}
    fn append(_: &mut (), _: ()) {}
    fn finish(_: &mut (), _: &mut Vec<ArrayRef>) {}
}

macro_rules! tuples {
    ($($($name:ident $field:tt),*;)*) => {
        $(impl<$($name: Columns),*> Columns for ($($name,)*) {
            type Builders = ($($name::Builders,)*);

            fn types(to: &mut Vec<(DataType, bool)>) {
                $($name::types(to);)*
            }
            fn append(to: &mut Self::Builders, value: Self::Ref<'_>) {
                $($name::append(&mut to.$field, value.$field);)*
            }
            fn finish(builders: &mut Self::Builders, to: &mut Vec<ArrayRef>) {
                $($name::finish(&mut builders.$field, to);)*
            }
        })*
    };
}

tuples!(
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
    A 0, B 1, C 2, D 3, E 4;
    A 0, B 1, C 2, D 3, E 4, F 5;
    A 0, B 1, C 2, D 3, E 4, F 5, G 6;
    A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7;
);
