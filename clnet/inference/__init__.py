"""From raw outputs to findings in the pixels of the files."""
