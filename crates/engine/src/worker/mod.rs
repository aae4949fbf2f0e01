pub(crate) mod main_loop;
pub(crate) mod deliver;
pub(crate) mod save;
pub(crate) mod bad_record_search;
