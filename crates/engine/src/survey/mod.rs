pub(crate) mod sampler;
pub(crate) mod range_finder;
