pub(crate) mod log;
