pub(crate) mod pairs;
pub(crate) mod map_reduce;
pub(crate) mod partition;
pub(crate) mod ranges;
