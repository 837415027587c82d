"""Evaluation: recall at false positives per image, links, intervals, error types, comparisons, the report."""
