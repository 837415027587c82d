"""Commands of `clnet …` that are too long for `clnet/cli.py`."""
