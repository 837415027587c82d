"""A number with its noun, as it is said."""


def counted(number: int, noun: str) -> str:
    """Such as "1 mass", "2 masses", "0 files"."""
    ending = "" if number == 1 else "es" if noun.endswith("s") else "s"
    return f"{number} {noun}{ending}"
