pub(crate) mod bad_files;
pub(crate) mod builder;
