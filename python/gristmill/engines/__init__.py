"""Engines run a plan: `machine` in worker processes, `spark` on a cluster, `local` in this process.

Each has a `run(stage, settings) -> Run`. They give the same results; `local` is the simplest one.
"""
