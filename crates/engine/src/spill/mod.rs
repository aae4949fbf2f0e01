pub(crate) mod spill_file;
pub(crate) mod run;
pub(crate) mod merge;
pub(crate) mod values;
pub(crate) mod reduce_memory;
pub(crate) mod sorter;
