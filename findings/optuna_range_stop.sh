#!/bin/bash
# What one expects: range(2,4) means 2 and 3 in every sweeper of Hydra. Its own text of range() says "r[i] < stop", and the basic
# sweeper does that.
# What happens: Optuna's sweeper asks for 2, 3 and 4. The same range in shuffle() is without its stop again, and with the grid sampler
# the last value is missing, be it the stop or not: range(0,5,2), which is 0, 2, 4 elsewhere, is 0, 2.
# Version: hydra-core 1.3.8, hydra-optuna-sweeper 1.3.0, optuna 2.10.1
# Source: create_optuna_distribution_from_override and _to_grid_sampler_choices in hydra_plugins/hydra_optuna_sweeper/_impl.py; the
# text of range() in hydra/_internal/grammar/functions.py
# Date: 2026-11-29
# Seen:
#     hydra-core             1.3.8
#     hydra-optuna-sweeper   1.3.0
#     optuna                 2.10.1
#     basic, range(2,4): 2 3
#     optuna, range(2,4): 2 3 4
#     optuna, shuffle(range(2,4)): 2 3
#     optuna with the grid sampler, range(2,4): 2 3
#     basic, range(0,5,2): 0 2 4
#     optuna with the grid sampler, range(0,5,2): 0 2

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
grid=(hydra/sweeper=optuna hydra/sweeper/sampler=grid)
expect 'basic, range(2,4)' "$(values '+x=range(2,4)')" '2 3'
expect 'optuna, range(2,4)' "$(values '+x=range(2,4)' "${optuna[@]}")" '2 3 4'
expect 'optuna, shuffle(range(2,4))' "$(values '+x=shuffle(range(2,4))' "${optuna[@]}")" '2 3'
expect 'optuna with the grid sampler, range(2,4)' "$(values '+x=range(2,4)' "${grid[@]}")" '2 3'
expect 'basic, range(0,5,2)' "$(values '+x=range(0,5,2)')" '0 2 4'
expect 'optuna with the grid sampler, range(0,5,2)' "$(values '+x=range(0,5,2)' "${grid[@]}")" '0 2'
exit "$changed"
