"""Program: compiles an MJCF file within a limit of processor time and memory, and writes the model to its output.

`mjcf_compile` runs it. It imports nothing of ours, so that it starts quickly. Arguments: the file, the parent's process
id, seconds, bytes, and the parent's `sys.path` as JSON. The output is `m` and the model as MuJoCo saves it, or `e` and
a sentence.
"""

import json
import os
import signal
import sys

if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[5])

import ctypes
import resource

_PR_SET_PDEATHSIG = 1  # of Linux's prctl


def main(file: str, parent: int, seconds: int, memory: int) -> None:
    """Compile `file`."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C reaches parent and child: MuJoCo would not look up
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            return
    output = os.dup(1)
    os.dup2(2, 1)  # MuJoCo's warnings are no part of the answer
    for limit, value in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, memory)):
        try:
            resource.setrlimit(limit, (value, value))
        except (ValueError, OSError):  # a lower one is set, or the system has none
            pass
    import mujoco
    import numpy as np

    with open(output, "wb") as stream:
        try:
            model = mujoco.MjModel.from_xml_path(file)
            mujoco.MjData(model)  # the parent makes one, too
            saved = np.empty(mujoco.mj_sizeModel(model), np.uint8)
            mujoco.mj_saveModel(model, None, saved)
        except (MemoryError, RuntimeError):  # the bindings call a refused allocation an unknown exception
            stream.write(f"eit needs more than {memory >> 30} GiB of memory".encode())
        except (ValueError, mujoco.FatalError) as error:
            stream.write(b"e" + str(error).encode())
        else:
            stream.write(b"m")
            stream.write(saved)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
