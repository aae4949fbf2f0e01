pub(crate) mod lane;
