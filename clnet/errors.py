"""The root of every error that clnet raises on purpose."""


class ClnetError(Exception):
    """Something that the user can fix; the message says what, where, and how.

    The command line prints the message alone, without a traceback.
    """
