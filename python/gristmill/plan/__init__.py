"""The plan of a job: what a dataset is made of, as plain data, cut into stages."""
