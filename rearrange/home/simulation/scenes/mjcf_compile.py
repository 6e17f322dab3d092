"""MJCF files that others wrote are compiled in a process of their own.

On a small file MuJoCo's reader can take hours or gigabytes, or crash, and it answers no signal meanwhile. The child
process ends at its limits, and with its parent. It costs 0.2 s for each file, once per process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import mujoco

from rearrange.home.errors import UserError
from rearrange.home.simulation.scenes.mjcf_limits import check_documents, check_model

MOST_CPU_S, MOST_WAIT_S = 60, 300
MOST_MEMORY = 4 << 30  # bytes
_CHILD = Path(__file__).with_name("mjcf_child.py")
_NAME = "model.mjb"


@lru_cache(maxsize=8)
def compiled(file: Path) -> mujoco.MjModel:
    """The model of an MJCF file. Raises UserError, with the file and the reason, if it cannot be used."""
    check_documents(file)
    limits = map(str, (os.getpid(), MOST_CPU_S, MOST_MEMORY))
    command = [sys.executable, "-P", str(_CHILD), str(file.absolute()), *limits, json.dumps(sys.path)]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=MOST_WAIT_S,
                              env=os.environ | {"OPENBLAS_NUM_THREADS": "1"})
    except subprocess.TimeoutExpired:
        raise UserError(f"{file} cannot be used: MuJoCo has not compiled it in {MOST_WAIT_S} s.") from None
    kind, answer = done.stdout[:1], done.stdout[1:]
    if done.returncode == 0 and kind == b"m":
        model = mujoco.MjModel.from_binary_path(_NAME, {_NAME: answer})
        check_model(file, model)
        return model
    if done.returncode == 0 and kind == b"e":
        why = f"MuJoCo says {' '.join(answer.decode(errors='replace').split()).rstrip('.')}"
    elif done.returncode == -signal.SIGXCPU or done.returncode == -signal.SIGKILL:
        why = f"MuJoCo has not compiled it in {MOST_CPU_S} s of processor time and {MOST_MEMORY >> 30} GiB of memory"
    elif done.returncode < 0:
        why = f"MuJoCo crashed on it ({signal.Signals(-done.returncode).name})"
    else:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = f"MuJoCo ended with {done.returncode} on it ({said[-1] if said else 'no word'})"
    raise UserError(f"{file} cannot be used: {why}.")
