pub(crate) mod settings;
pub(crate) mod mode;
pub(crate) mod sample;
pub(crate) mod budget;
pub(crate) mod job_plan;
pub(crate) mod explain;
