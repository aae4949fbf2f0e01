pub(crate) mod work;
pub(crate) mod bad_record_search;
pub(crate) mod mapper;
pub(crate) mod gathered;
pub(crate) mod deliver;
pub(crate) mod save;
pub(crate) mod next_action;
pub(crate) mod main_loop;
