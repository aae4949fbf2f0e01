pub(crate) mod bad_files;
pub(crate) mod opening;
pub(crate) mod builder;
