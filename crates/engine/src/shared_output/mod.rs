pub(crate) mod array;
pub(crate) mod diff;
