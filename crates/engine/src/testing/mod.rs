pub(crate) mod kill_points;
