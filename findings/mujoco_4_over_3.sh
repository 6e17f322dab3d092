#!/usr/bin/env bash
# mujoco 4.0.0 installed over 3.17.0: cannot be imported, while pip says that all is well.
#
# What one expects: `pip install --upgrade mujoco` gives a package that can be imported, or pip says that it does not.
# What happens: mujoco 4.0.0 is split into mujoco, mujoco-core and mujoco-studio, which write into one folder. pip
#   installs mujoco-core first and removes the old mujoco after that, with all files whose names both have: what was
#   just installed is gone. `pip check` compares requirements, which hold. A fresh environment is whole; so is the
#   damaged one after pip install --force-reinstall --no-deps of the three, as the error says.
# Version: mujoco 4.0.0 over 3.17.0, pip 24.0
# Source: https://pypi.org/project/mujoco/4.0.0/, mujoco/__init__.py
# Date: 2026-11-29
# Seen:
#     mujoco 3.17.0:                                imported 3.17.0
#     mujoco 4.0.0 over it:                         ImportError: The 'mujoco' package is installed, but its core bindings ('mujoco-c
#     pip check:                                    No broken requirements found.
#     after --force-reinstall --no-deps:            imported 4.0.0

set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/env"
cd "$folder"
install() { "$folder/env/bin/pip" install --quiet --disable-pip-version-check "$@"; }
said() {  # what, as a column, and the last line of an import's answer
  printf '%-46s' "$1:"
  if "$folder/env/bin/python" -c "import mujoco; print('imported', mujoco.__version__)" > out 2>&1; then
    cat out
  else
    grep '^ImportError' out | cut -c 1-100; return 1
  fi
}
install mujoco==3.17.0 numpy==2.4.6
said "mujoco 3.17.0"
install mujoco==4.0.0 numpy==2.4.6
changed=0
said "mujoco 4.0.0 over it" && changed=1
printf '%-46s' "pip check:"; "$folder/env/bin/pip" check --disable-pip-version-check || changed=1
parts=$("$folder/env/bin/pip" list --disable-pip-version-check --format=freeze | grep '^mujoco' | tr '\n' ' ')
install --force-reinstall --no-deps $parts
said "after --force-reinstall --no-deps" || changed=1
exit "$changed"
