pub(crate) mod shelf_writer;
pub(crate) mod step;
