"""The networks of the paper, with no input or output of their own."""
