"""Coverage-guided fuzzing of one reader of bytes by atheris: `python fuzz_target.py READER OPTION…`.

The options are those of libFuzzer.

Ends with an error at the first input that is neither read nor refused by name.
"""

import sys
import time
from collections.abc import Callable

import atheris

with atheris.instrument_imports(include=["clnet.converters", "clnet.data"], enable_loader_override=False):
    from readers import BYTE_READERS, verdict

SLOWEST_SECONDS = 5.0


def main(words: list[str]) -> None:
    """Fuzz until libFuzzer's options say that it is enough."""
    atheris.Setup(words, judge(BYTE_READERS[words.pop(1)]))
    atheris.Fuzz()


def judge(read: Callable[[bytes], object]) -> Callable[[bytes], None]:
    """Read an input, and complain if that takes too long on a core; libFuzzer's clock also counts waiting."""

    def judged(data: bytes) -> None:
        began = time.process_time()
        verdict(read, data)
        seconds = time.process_time() - began
        if seconds > SLOWEST_SECONDS:
            raise RuntimeError(f"takes {seconds:.1f} s")

    return judged


if __name__ == "__main__":
    main(sys.argv)
