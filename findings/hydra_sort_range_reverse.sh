#!/bin/bash
# What one expects: sort(range(1,9,3),reverse=true) runs the jobs of range(1,9,3), which are 1, 4, 7, from behind.
# What happens: other jobs run: 0, 3, 6. The ends are exchanged and moved by a step, which is right only where a step ends at the stop.
# Version: hydra-core 1.3.8
# Source: _sort_sweep in hydra/_internal/grammar/functions.py
# Date: 2026-11-29
# Seen:
#     hydra-core             1.3.8
#     range(1,9,3): 1 4 7
#     sort(range(1,9,3),reverse=true), sorted here: 0 3 6
#     sort(range(1,10,3),reverse=true), sorted here: 1 4 7

set -euo pipefail
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check hydra-core==1.3.8
venv/bin/python -m pip list --disable-pip-version-check 2>/dev/null | grep -i -E '^(hydra-core) '
cat > app.py <<'END'
import hydra


@hydra.main(version_base="1.3", config_path=None)
def main(config):
    print("x =", config.x)
    return 1.0


main()
END
values() {  # of x in the jobs that a command line makes, each once, in one line
    venv/bin/python app.py -m "$@" hydra/job_logging=none hydra/hydra_logging=none 2>/dev/null | sed -n 's/^x = //p' | sort -u | sort -g | paste -sd' '
}
expect() {  # words, what was seen, what this file says
    echo "$1: $2"
    [ "$2" = "$3" ] || { echo "changed: it was $3"; changed=1; }
}
changed=0
expect 'range(1,9,3)' "$(values '+x=range(1,9,3)')" '1 4 7'
expect 'sort(range(1,9,3),reverse=true), sorted here' "$(values '+x=sort(range(1,9,3),reverse=true)')" '0 3 6'
expect 'sort(range(1,10,3),reverse=true), sorted here' "$(values '+x=sort(range(1,10,3),reverse=true)')" '1 4 7'
exit "$changed"
