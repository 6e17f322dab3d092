#!/bin/bash
# What one expects: choice(1,null) is the long form of 1,null.
# What happens: 1,null runs two jobs, and choice(1,null) is refused: its arguments may be lists and mappings, but not null.
# Version: hydra-core 1.3.8
# Source: choice() in hydra/_internal/grammar/functions.py
# Date: 2026-11-29
# Seen:
#     hydra-core             1.3.8
#     1,null: None 1
#     choice(1,null): 

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
expect '1,null' "$(values '+x=1,null')" 'None 1'
expect 'choice(1,null)' "$(values '+x=choice(1,null)' || true)" ''
exit "$changed"
