"""The commands of `clnet …`, one file for each kind."""
