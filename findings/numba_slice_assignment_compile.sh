#!/usr/bin/env bash
# numba takes some thirty times as long to compile `a[:n] = b[:n]` as to compile the two loops that do the same.
#
# What one expects: that arrays are copied by one statement or by loops makes no difference to who waits for the compiler; the statement is
#   the shorter program, and numba lists it as supported.
# What happens: the first assignment of a slice of an array to another that a process compiles takes seconds of processor time, since numba
#   compiles its own code for broadcasting, shapes and their errors with it; loops over the same elements take a fraction of a second. Later
#   assignments in the same process take about three times as long as loops. With cache=True the wait comes once for each installation, in
#   every process that starts before the cache is there.
# Version: numba 0.68.1, numpy 2.4.6
# Source: https://pypi.org/project/numba/0.68.1/, numba/np/arrayobj.py, setitem_array
# Date: 2026-11-30
# Seen (processor time; the ratio counts):
#     slices  6.1 s
#     loops   0.2 s
#     slices take more than 8 times as long: True

set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numba==0.68.1 numpy==2.4.6
cat > "$folder/compile.py" <<'PYTHON'
import time

import numba


def slices(n, a, b):
    a[:n] = b[:n]


def loops(n, a, b):
    for i in range(n):
        for j in range(a.shape[1]):
            a[i, j] = b[i, j]


arguments = (numba.int64, numba.float64[:, ::1], numba.float64[:, ::1])
numba.njit(lambda x: x + 1)(1)  # what every first compilation brings with it
took = {}
for function in (loops, slices):
    start = time.process_time()
    numba.njit(arguments)(function)
    took[function.__name__] = time.process_time() - start
for name in ("slices", "loops"):
    print(f"{name:<7} {took[name]:.1f} s")
more = took["slices"] > 8 * took["loops"]
print("slices take more than 8 times as long:", more)
raise SystemExit(not more)
PYTHON
"$folder/venv/bin/python" "$folder/compile.py"
