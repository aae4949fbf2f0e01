pub(crate) mod diff;
pub(crate) mod array;
