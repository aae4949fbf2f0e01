"""The program's own modules, as a job sees them: as they are in the program when the job is called.

Workers of a program with threads are not copies of the program: they import its modules from their files. Since then the program may
have reloaded a module, set one of its variables, or patched a function for a test. So each job compares what its functions use:

1. The program lists the functions and variables that the job's functions may use (`used`), by the names in their code.
2. The process of the job imports the modules and compares digests (`changes.differing`).
3. The program sends what differs (`changes.packed_changes`), and the process of the job puts it in place (`changes.apply`).

Modules of the user are compared whole. Of the standard library and of installed packages only the variables are compared whose
names the user's code contains, and only whether they are still the library's own.
"""
