pub(crate) mod sampler;
pub(crate) mod range_finder;
pub(crate) mod quote_scan;
