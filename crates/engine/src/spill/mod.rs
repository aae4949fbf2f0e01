pub(crate) mod spill_file;
pub(crate) mod run;
pub(crate) mod merge;
pub(crate) mod sorter;
pub(crate) mod values;
