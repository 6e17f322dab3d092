#!/usr/bin/env bash
# A process that makes and drops many MjData under glibc keeps their arenas, 16 MB and more each, once one or two has been freed.
#
# What one expects: an MjData's arena, of which a simulation touches a megabyte or two, goes back to the system with `del data`: blocks of
#   more than 128 kB are given out by mmap and given back by munmap (mallopt(3), M_MMAP_THRESHOLD).
# What happens: glibc raises that threshold to the size of the first such block that is freed. From then on, arenas come from
#   the heap, where small things that are made meanwhile keep it from shrinking, and are cut from freed arenas until all of each is touched.
#   A program that walks through hundreds of scenes grows, although it keeps a few. The answer to it: fix the threshold below the arena's
#   size, by MALLOC_MMAP_THRESHOLD_=12582912 or mallopt(-3, 12 << 20), and the trim threshold with it, by mallopt(-1, 64 << 20).
# Version: mujoco 4.0.0, glibc 2.36
# Source: https://pypi.org/project/mujoco/4.0.0/ (`MjData.narena`); mallopt(3), "dynamic mmap threshold"
# Date: 2026-11-30
# Seen, of 12 MjData that were dropped, address space that stays taken:
#     as it comes                      227 of 240 MB
#     with a threshold of 12 MB        7 of 240 MB

set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check mujoco==4.0.0
cat > "$folder/drop.py" <<'PYTHON'
import gc

import mujoco


def taken_mb():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("VmSize")).split()[1]) / 1024


bodies = "".join(f'<body pos="{k} 0 1"><freejoint/><geom size=".1"/></body>' for k in range(20))
model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
for _ in range(2):
    mujoco.MjData(model)  # is freed at once
    gc.collect()
before, states, others = taken_mb(), [], []
for _ in range(12):
    states.append(mujoco.MjData(model))
    others.append(bytearray(100_000))  # what a program makes meanwhile
del states
gc.collect()
print(round(taken_mb() - before), round(12 * mujoco.MjData(model).narena / 2**20))
PYTHON
read -r kept all <<< "$("$folder/venv/bin/python" "$folder/drop.py")"
read -r fixed _ <<< "$(MALLOC_MMAP_THRESHOLD_=12582912 "$folder/venv/bin/python" "$folder/drop.py")"
echo "as it comes                      $kept of $all MB"
echo "with a threshold of 12 MB        $fixed of $all MB"
(( kept > all / 2 && fixed < all / 8 ))
