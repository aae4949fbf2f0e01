"""Shared arrays: functions write elements in their workers, and the engine merges them (twin and diff)."""

from __future__ import annotations

import ctypes
import itertools
import math
import mmap
import os
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..base.errors import PlanError
from ..base.known_as import known_as
from ..base.libraries import library

known_as(__name__, "gristmill.shared")

if TYPE_CHECKING:
    import numpy

_TYPES = ("float64", "float32", "int64", "uint64", "int32", "uint32", "uint8")


def shared_array(shape: int | tuple[int, ...], dtype: Any = "float64", *, name: str = "shared array") -> SharedArray:
    """Makes an array of zeros that functions may write to, if a dataset names it with :meth:`Dataset.uses`.

    Needs NumPy.

    A function of `map`, `filter`, `flat_map` or `map_batches` sees the array as it was when its stage began, and its own writes.
    After the job the program sees the writes of all workers. Two workers may write the same element only if they write the same
    value; otherwise the job ends with an error. If the job fails, or if the program stops before it has taken all records, the array
    stays as it was. If a worker dies, its work is done again by another, and so are its writes.

    `dtype` is float64, float32, int64, uint64, int32, uint32 or uint8. Errors call the array by its `name`. A function must use the
    array itself, and not a NumPy array that the program took from it. Raises :class:`gristmill.PlanError` for another type, or if a
    size is below 1.

    >>> import gristmill as gm
    >>> squares = gm.shared_array(4, "int64")
    >>> def write(n):
    ...     squares[n] = n * n
    ...     return n
    >>> gm.range(4).map(write).uses(squares).count(), squares[:].tolist()
    (4, [0, 1, 4, 9])
    """
    numpy = library("numpy", "shared_array")
    kind = numpy.dtype(dtype)
    if kind.name not in _TYPES:
        raise PlanError(f"a shared array has no elements of type {kind.name}; there are {', '.join(_TYPES)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if not sizes or min(sizes) < 1:
        raise PlanError(f"a shared array of shape {shape}: each size is at least 1")
    return SharedArray(name, sizes, kind)


class SharedArray:
    """An array made by :func:`shared_array`. It is indexed like a NumPy array, and `numpy.asarray` makes one of it.

    >>> import gristmill as gm
    >>> array = gm.shared_array((2, 3), "uint8", name="image")
    >>> array
    <SharedArray image: 2x3 of uint8>
    >>> array[0, 1] = 7
    >>> array.shape, array.size, array.nbytes, array[0].tolist()
    ((2, 3), 6, 6, [0, 7, 0])
    """

    def __init__(self, name: str, shape: tuple[int, ...], dtype: numpy.dtype[Any], copied: tuple[Any, str] | None = None) -> None:
        self.name, self.shape, self.dtype = name, shape, dtype
        self._array: Any = None
        self._lent: Any = None
        if copied is None:
            self._key: Any = (os.getpid(), next(_numbers))
            file = os.memfd_create(name)
            self._path: Callable[[], str] = lambda: f"/proc/{os.getpid()}/fd/{file}"
            weakref.finalize(self, os.close, file)
            os.ftruncate(file, self.nbytes)
            self._array = self._of(mmap.mmap(file, self.nbytes))
        else:
            self._key, path = copied
            self._path = lambda: path
        _living.add(self)

    @property
    def size(self) -> int:
        """The number of elements.

        >>> shared_array((2, 3)).size
        6
        """
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The length of all elements in bytes.

        >>> shared_array((2, 3), "int32").nbytes
        24
        """
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        return self._there()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._there()[index] = value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self._there()
        if dtype is not None and dtype != self.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __repr__(self) -> str:
        return f"<SharedArray {self.name}: {'x'.join(map(str, self.shape))} of {self.dtype.name}>"

    def __reduce__(self) -> Any:
        # Only jobs of this program need it elsewhere, and they run on this machine.
        return _rebuilt, (self.name, self.shape, self.dtype, self._key, self.path())

    # For the engine.

    def path(self) -> str:
        """The file that has the elements as the program sees them."""
        return self._path()

    def is_all_zeros(self) -> bool:
        """True if nobody has written to it."""
        return os.stat(self.path()).st_blocks == 0

    def lend(self, address: int) -> None:
        """Makes this the array at an address, which stays mapped in this process."""
        if self._lent is None:
            self._lent = self._of((ctypes.c_char * self.nbytes).from_address(address))
        self._array = self._lent

    def take_back(self) -> None:
        """Makes this no array, until it is lent again."""
        self._array = None

    def _of(self, buffer: Any) -> Any:
        import numpy

        return numpy.frombuffer(buffer, self.dtype).reshape(self.shape)

    def _there(self) -> Any:
        if self._array is None:
            raise PlanError(
                f"{self!r} is not here. Name it with Dataset.uses, behind the function; that is one of map, filter, flat_map or map_batches"
            )
        return self._array


_living: weakref.WeakSet[SharedArray] = weakref.WeakSet()
_numbers = itertools.count()


def living() -> list[SharedArray]:
    """All shared arrays of this process."""
    return sorted(_living, key=lambda array: array._key)


def _rebuilt(name: str, shape: tuple[int, ...], dtype: Any, key: Any, path: str) -> SharedArray:
    """The array with this key in this process, or one that is the program's."""
    for array in _living:
        if array._key == key:
            return array
    return SharedArray(name, shape, dtype, (key, path))
