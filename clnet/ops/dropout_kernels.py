"""Dropout's inner loops, compiled by numba: a hash of seed and place decides what is dropped.

Importing this module needs numba. All arrays are flat and float32; no two of them may overlap.
"""
# mypy: ignore-errors
# What numba compiles has numba's types.

from typing import Any, NamedTuple

import numpy as np
from numba import njit

# Functions that others call are inlined: so the compiler takes several numbers at once.
inlined = njit(inline="always")


class Kernels(NamedTuple):
    """All end with (low, high, threshold, scale, floor, first, last).

    Low and high are the halves of the seed. A number is dropped if its hash is below the threshold, or it is
    below the floor itself; the rest is scaled. They work on places from first to last.
    """

    drop: Any
    """(x, out, …): writes what is left of x."""
    drop_and_add: Any
    """(x, base, out, …): writes base + what is left of x."""


@inlined
def mix(bits: Any) -> Any:
    """A hash of 32 bits; each bit of the result depends on all."""
    bits = np.uint32(bits ^ np.uint32(bits >> np.uint32(16)))
    bits = np.uint32(bits * np.uint32(0x7FEB352D))
    bits = np.uint32(bits ^ np.uint32(bits >> np.uint32(15)))
    bits = np.uint32(bits * np.uint32(0x846CA68B))
    return np.uint32(bits ^ np.uint32(bits >> np.uint32(16)))


@inlined
def left_of(number: Any, place: Any, low: Any, high: Any, threshold: Any, scale: Any, floor: Any) -> Any:
    """What is left of the number at a place."""
    # One hash after the other, without a loop over the halves of the seed, for the compiler's sake again.
    bits = mix(np.uint32(mix(np.uint32(np.uint32(place) ^ low)) ^ high))
    # A comparison that is false for not a number, which must stay what it is.
    dropped = bits < threshold or number < floor
    return number * (np.float32(0) if dropped else scale)


def make_kernels(cache: bool) -> Kernels:
    """The kernels, with or without numba's cache on disk."""
    compiled = njit(cache=cache, nogil=True, error_model="numpy")

    @compiled
    def drop(
        x: Any, out: Any, low: Any, high: Any, threshold: Any, scale: Any, floor: Any, first: int, last: int
    ) -> None:
        x_part, out_part = x[first:last], out[first:last]
        for index in range(x_part.size):
            out_part[index] = left_of(x_part[index], first + index, low, high, threshold, scale, floor)

    @compiled
    def drop_and_add(
        x: Any,
        base: Any,
        out: Any,
        low: Any,
        high: Any,
        threshold: Any,
        scale: Any,
        floor: Any,
        first: int,
        last: int,
    ) -> None:
        x_part, base_part, out_part = x[first:last], base[first:last], out[first:last]
        for index in range(x_part.size):
            left = left_of(x_part[index], first + index, low, high, threshold, scale, floor)
            out_part[index] = base_part[index] + left

    return Kernels(drop, drop_and_add)
