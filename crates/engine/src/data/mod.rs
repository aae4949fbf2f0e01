pub(crate) mod short;
pub(crate) mod seed;
pub(crate) mod datum;
pub(crate) mod key;
pub(crate) mod entry;
pub(crate) mod digest;
pub(crate) mod order;
pub(crate) mod contract;
