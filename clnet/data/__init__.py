"""What a pair of views is, and where pairs come from."""
