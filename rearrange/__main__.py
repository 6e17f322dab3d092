"""`python -m rearrange` is `rearrange`."""

import sys

from rearrange.command_line.cli import main

if __name__ == "__main__":
    status = main()
    # Where a KeyboardInterrupt has left text that was executed, such as a dataclass that was just made, `python -m` ends as if nobody
    # had caught it, whatever the status is (CPython 3.11 to 3.13). Text that is executed to its end is the remedy.
    exec("")
    sys.exit(status)
