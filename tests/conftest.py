"""Its place makes `tests/` importable, for the helpers that test modules share."""
