#!/bin/bash
# What one expects: hydra.sweeper.params, which is null until it is set, can be set on a command line, as any setting of Hydra's.
# What happens: a traceback of OmegaConf, "Unexpected type for root: NoneType", or "'NoneType' object has no attribute 'get'": a mapping
# that is null takes no part and no mapping. In a file of settings it works.
# Version: hydra-core 1.3.8, omegaconf 2.3.1
# Source: OmegaConf.update with merge in omegaconf/omegaconf.py, called by hydra/_internal/config_loader_impl.py
# Date: 2026-11-29
# Seen:
#     hydra-core             1.3.8
#     omegaconf              2.3.1
#     a part: AssertionError: Unexpected type for root: NoneType
#     the whole: AttributeError: 'NoneType' object has no attribute 'get'

set -euo pipefail
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check hydra-core==1.3.8 omegaconf==2.3.1
venv/bin/python -m pip list --disable-pip-version-check 2>/dev/null | grep -i -E '^(hydra-core|omegaconf) '
cat > app.py <<'END'
import hydra


@hydra.main(version_base="1.3", config_path=None)
def main(config):
    print("x =", config.x)
    return 1.0


main()
END
last() { venv/bin/python app.py -m +x=1,2 "$1" 2>&1 | grep -E '^[A-Za-z]+Error' | tail -1 || true; }
changed=0
part=$(last "hydra.sweeper.params.y='1,2'")
whole=$(last "hydra.sweeper.params={y: '1,2'}")
echo "a part: $part"
echo "the whole: $whole"
[ "$part" = 'AssertionError: Unexpected type for root: NoneType' ] || { echo 'changed'; changed=1; }
[ "$whole" = "AttributeError: 'NoneType' object has no attribute 'get'" ] || { echo 'changed'; changed=1; }
exit "$changed"
