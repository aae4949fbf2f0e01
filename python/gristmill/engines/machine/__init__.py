"""The engine for one machine: worker processes with native shuffles, forked by the process of a job."""
