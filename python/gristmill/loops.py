"""Loops: the result of each step is the input of the next."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TypeVar, cast

from .base.errors import PlanError
from .dataset import Dataset

S = TypeVar("S")


def iterate(state: S, step: Callable[[S], S], *, steps: int, until: Callable[[S, S], object] | None = None) -> S:
    """Replaces a state by `step(state)`, at most `steps` times, until `until(before, after)`; returns the last state.

    A state is a dataset, or any other object that a step works with, such as the centres of clusters. Each state that is a dataset
    is made at once and kept in memory, as by :meth:`Dataset.cache`. Also cache a dataset that every step reads. Raises
    :class:`gristmill.PlanError` if `steps` is below 1.

    >>> import gristmill as gm
    >>> friends = gm.from_iterable([("ann", "bob"), ("bob", "cid"), ("dan", "eve")]).cache()
    >>> def step(known):
    ...     found = known.key_by(lambda name: name).join(friends).map(lambda row: row[1][1])
    ...     return gm.from_iterable([*known, *found]).distinct()
    >>> gm.iterate(gm.from_iterable(["ann"]), step, steps=9, until=lambda a, b: a.count() == b.count()).collect()
    ['ann', 'bob', 'cid']
    >>> gm.iterate(1.0, lambda x: (x + 2 / x) / 2, steps=5)
    1.414213562373095
    """
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise PlanError(f"iterate(steps={steps!r}): give a whole number, at least 1")
    for _ in builtins.range(steps):
        before, state = state, step(state)
        if isinstance(state, Dataset):
            made = state.cache()
            made.count()
            state = cast(S, made)
        if until is not None and until(before, state):
            break
    return state
