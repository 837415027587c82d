"""A disk that is full, as far as this process can tell."""

import resource
from contextlib import contextmanager


@contextmanager
def full_disk(size=0):
    """Inside, the system lets no file of this process grow beyond a size in bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
