"""One converter a data set: from what stands on disk to a datalist and an account of what was used."""
