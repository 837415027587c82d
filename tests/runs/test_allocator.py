"""Memory that tensors free is kept, so that the next ones need not wait for the system."""

import ctypes
import subprocess
import sys

import pytest

from clnet.runs import allocator

PAGES_OF_LATER_TENSORS = """
import resource, statistics, sys, torch
from clnet.runs.allocator import keep_freed_memory
if sys.argv[1] == "kept":
    assert keep_freed_memory()
def pages():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def use():  # 64 MB, in two pieces that are freed in another order than they were made
    before = pages()
    first, second = torch.ones(2**23), torch.ones(2**23)
    del first
    return pages() - before
print(int(statistics.median(use() for _ in range(15))))
"""


def pages(how):
    """Of the median use: once in a while a small object moves into freed memory, where a piece was before."""
    said = subprocess.run(
        [sys.executable, "-c", PAGES_OF_LATER_TENSORS, how], check=True, capture_output=True, text=True
    )
    return int(said.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="needs glibc")
def test_later_tensors_get_the_memory_of_earlier_ones():
    assert pages("given back") > 2**13  # every page of 4 KiB of more than one of the two
    assert pages("kept") < 2**7


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda name: object())
    assert allocator.keep_freed_memory() is False
