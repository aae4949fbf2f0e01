pub(crate) mod counters;
pub(crate) mod words;
