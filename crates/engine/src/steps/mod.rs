pub(crate) mod step;
pub(crate) mod shelf_writer;
