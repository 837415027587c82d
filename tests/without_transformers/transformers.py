"""Hides transformers from the processes that tests start; see tests/conftest.py."""

raise ImportError("transformers is an extra of the tests, which users need not have")
