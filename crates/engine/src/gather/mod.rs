pub(crate) mod combined;
pub(crate) mod heavy_keys;
pub(crate) mod store;
