"""The engine for Apache Spark: a plan of Spark made in the program, and the tasks that its executors run."""
