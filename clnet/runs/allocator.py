"""Memory that tensors free is kept for the next ones."""

import ctypes

# Of glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
MOST = 2**31 - 1


def keep_freed_memory() -> bool:
    """Let the C library keep memory that is freed, from here to the end of the process; tells if it does so.

    By default large pieces go back to the system at once, and the system hands them out again page by page,
    each filled with zeros. In a training, whose every step needs the same pieces, that is a good part of the
    time. The process holds on to the most that it ever needed.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):
        return False  # another C library than glibc
    return all(mallopt(option, MOST) == 1 for option in (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD))
