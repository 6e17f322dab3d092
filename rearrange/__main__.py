"""`python -m rearrange` is `rearrange`."""

import sys

from rearrange.command_line.cli import main

if __name__ == "__main__":
    status = main()
    # CPython 3.11 to 3.13: once a KeyboardInterrupt has passed through an exec(), as dataclasses use it, `python -m`
    # ends by SIGINT whatever the status is, also where the exception was caught. An exec() that ends well makes it
    # forget that.
    exec("")
    sys.exit(status)
