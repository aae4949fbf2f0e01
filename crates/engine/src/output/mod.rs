pub(crate) mod parts;
pub(crate) mod outcome;
