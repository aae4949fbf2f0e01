pub(crate) mod reduction;
pub(crate) mod delivery;
