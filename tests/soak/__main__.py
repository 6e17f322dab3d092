"""`python -m tests.soak seconds=3600 seed=0 out=soak.json sieges=training,files`; see tests/soak/sieges.py."""

import sys
from pathlib import Path

from tests.soak.sieges import SIEGES, main

if __name__ == "__main__":
    words = dict(word.split("=", 1) for word in sys.argv[1:])
    chosen = tuple(words["sieges"].split(",")) if "sieges" in words else SIEGES
    sys.exit(main(float(words.get("seconds", 3600)), int(words.get("seed", 0)), Path(words.get("out", "soak.json")),
                  chosen))
