"""`python -m clnet.cli …` is `clnet …`."""

import sys

from clnet.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
