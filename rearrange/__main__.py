"""`python -m rearrange` is `rearrange`."""

import sys

from rearrange.cli import main

if __name__ == "__main__":
    sys.exit(main())
