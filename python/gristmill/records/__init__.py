"""Records on their way to the program: a job under way, its timeline, tables, batches, and files of records."""
