"""The commands of `clnet …`, a file for each kind.

Each command is a function that takes the parsed arguments. What it needs is imported when it runs, so that
`clnet --help` answers at once.
"""
