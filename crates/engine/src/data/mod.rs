pub(crate) mod datum;
pub(crate) mod key;
pub(crate) mod entry;
pub(crate) mod contract;
pub(crate) mod seed;
pub(crate) mod digest;
