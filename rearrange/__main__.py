"""`python -m rearrange` is `rearrange`."""

import sys

from rearrange.command_line.cli import main

if __name__ == "__main__":
    sys.exit(main())
