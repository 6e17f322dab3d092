#!/bin/bash
# What one expects: range() of Hydra leaves its stop out, with steps of 0.1, too: it computes in decimal numbers.
# What happens: range(0,0.8,0.1) ends with 0.8, as do those to 0.1, 0.2, 0.4, 1.1, 1.6, 2.2 and 2.7; range(0,1,0.1) ends with 0.9. The
# decimal numbers are made of the binary ones, with 55 digits, and each sum is rounded to 28.
# Version: hydra-core 1.3.8
# Source: FloatRange in hydra/core/override_parser/types.py
# Date: 2026-11-29
# Seen:
#     hydra-core             1.3.8
#     range(0,0.6,0.1): 0.0 0.1 0.2 0.3 0.4 0.5
#     range(0,0.8,0.1): 0.0 0.1 0.2 0.3 0.4 0.5 0.6 0.7000000000000001 0.8
#     range(0,1,0.1): 0.0 0.1 0.2 0.3 0.4 0.5 0.6 0.7000000000000001 0.8 0.9

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
expect 'range(0,0.6,0.1)' "$(values '+x=range(0,0.6,0.1)')" '0.0 0.1 0.2 0.3 0.4 0.5'
expect 'range(0,0.8,0.1)' "$(values '+x=range(0,0.8,0.1)')" '0.0 0.1 0.2 0.3 0.4 0.5 0.6 0.7000000000000001 0.8'
expect 'range(0,1,0.1)' "$(values '+x=range(0,1,0.1)')" '0.0 0.1 0.2 0.3 0.4 0.5 0.6 0.7000000000000001 0.8 0.9'
exit "$changed"
