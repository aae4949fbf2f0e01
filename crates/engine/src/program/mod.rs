pub(crate) mod map_reduce;
pub(crate) mod partition;
