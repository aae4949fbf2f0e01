pub(crate) mod sample;
pub(crate) mod ranges;
