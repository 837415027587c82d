"""Coverage-guided fuzzing of one reader of bytes by atheris: `python fuzz_target.py READER OPTION…`.

The options are those of libFuzzer.

Ends with an error at the first input that is neither read nor refused by name.
"""

import sys

import atheris

with atheris.instrument_imports(include=["clnet.converters", "clnet.data"], enable_loader_override=False):
    from readers import BYTE_READERS, verdict


def main(words: list[str]) -> None:
    """Fuzz until libFuzzer's options say that it is enough."""
    read = BYTE_READERS[words.pop(1)]
    atheris.Setup(words, lambda data: verdict(read, data) and None)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv)
