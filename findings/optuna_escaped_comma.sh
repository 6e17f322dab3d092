#!/bin/bash
# What one expects: a value with an escaped comma, as in x=a\\,b,c, is the text "a,b" in every sweeper of Hydra.
# What happens: the basic sweeper runs "a,b" and "c"; Optuna's gives the job x=a,b, which is refused as two values, and the study ends.
# Quoted, as in x='a,b',c, it is right in both.
# Version: hydra-core 1.3.8, hydra-optuna-sweeper 1.3.0, optuna 2.10.1
# Source: Transformer.encode in hydra/core/override_parser/types.py, which leaves a text without its escapes
# Date: 2026-11-29
# Seen:
#     hydra-core             1.3.8
#     hydra-optuna-sweeper   1.3.0
#     optuna                 2.10.1
#     basic, a\,b,c: a,b c
#     optuna, a\,b,c: exit status: 1
#     optuna, a\,b,c: said: Ambiguous value for argument '+x=a,b'
#     optuna, 'a,b',c: a,b c

set -euo pipefail
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check hydra-core==1.3.8 hydra-optuna-sweeper==1.3.0 optuna==2.10.1 'sqlalchemy<2'
venv/bin/python -m pip list --disable-pip-version-check 2>/dev/null | grep -i -E '^(hydra-.*|optuna) '
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
optuna=(hydra/sweeper=optuna hydra.sweeper.n_trials=40 hydra.sweeper.n_jobs=40 hydra/sweeper/sampler=random hydra.sweeper.sampler.seed=0)
expect 'basic, a\,b,c' "$(values '+x=a\,b,c')" 'a,b c'
status=0
venv/bin/python app.py -m '+x=a\,b,c' "${optuna[@]}" >/dev/null 2>said || status=$?
expect 'optuna, a\,b,c: exit status' "$status" 1
expect 'optuna, a\,b,c: said' "$(grep -o -m 1 "Ambiguous value for argument '.*'" said || true)" "Ambiguous value for argument '+x=a,b'"
expect "optuna, 'a,b',c" "$(values "+x='a,b',c" "${optuna[@]}")" 'a,b c'
exit "$changed"
