pub(crate) mod header;
pub(crate) mod outbox;
pub(crate) mod inbox;
pub(crate) mod lane;
