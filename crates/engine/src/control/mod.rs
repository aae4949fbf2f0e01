pub(crate) mod counters;
pub(crate) mod words;
pub(crate) mod kill_points;
