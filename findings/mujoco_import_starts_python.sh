#!/usr/bin/env bash
# `import mujoco` starts another Python on Linux, once for each process that imports it.
#
# What one expects: an import loads modules of its own process; at most it runs nothing until a window or a renderer is asked for.
# What happens: unless MUJOCO_GL says otherwise, mujoco imports glfw, which starts `python -c ...` for each GLFW library that it finds,
#   to read its version there. A quarter of the processor time of the import is this; a fleet of environment workers pays it in each; and
#   a process that is killed just then leaves that child behind, which ends with a traceback on the same terminal:
#   "EOFError: EOF when reading a line". With MUJOCO_GL=disable, or egl or osmesa, nothing is started.
# Version: mujoco 3.17.0 and 4.0.0, glfw 2.11.0
# Source: https://pypi.org/project/glfw/2.11.0/, glfw/library.py, _glfw_get_version; mujoco/rendering/classic/gl_context.py
# Date: 2026-11-29
# Seen:
#     mujoco 3.17.0:                     1 process, of python
#     mujoco 3.17.0, MUJOCO_GL=disable:  0 processes
#     mujoco 4.0.0:                      1 process, of python
#     mujoco 4.0.0, MUJOCO_GL=disable:   0 processes

set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
cat > "$folder/count.py" <<'PYTHON'
import os
import sys

started = []
sys.addaudithook(lambda event, given: started.append(given[0]) if event == "subprocess.Popen" else None)
import mujoco  # noqa: E402, F401

of = {os.path.basename(program).rstrip("0123456789.") for program in started}
print(f"{len(started)} process{'' if len(started) == 1 else 'es'}{', of ' if of else ''}{' and '.join(of)}")
PYTHON
changed=0
for version in 3.17.0 4.0.0; do
  "${PYTHON:-python3}" -m venv "$folder/$version"
  "$folder/$version/bin/pip" install --quiet --disable-pip-version-check "mujoco==$version" numpy==2.4.6 glfw==2.11.0
  for gl in "" disable; do
    printf '%-35s' "mujoco $version${gl:+, MUJOCO_GL=$gl}:"
    said=$(env -u MUJOCO_GL ${gl:+MUJOCO_GL=$gl} "$folder/$version/bin/python" "$folder/count.py"); echo "$said"
    case "$gl$said" in "1 process, of python" | "disable0 processes") ;; *) changed=1 ;; esac
  done
done
exit "$changed"
