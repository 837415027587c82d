"""What findings are worth: recall at false positives per image, links, intervals, errors, comparisons."""
