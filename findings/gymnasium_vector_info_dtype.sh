#!/usr/bin/env bash
# Gymnasium's vectors keep a number of the infos in the type of whichever environment says it first: after an int, 0.9 becomes 0.
#
# What one expects: `infos["score"][i]` is what environment i has said, as each observation and reward is; the order of the environments does
#   not matter.
# What happens: the array of a key is made with the type of the value that comes first, and later ones are written into it. If the first
#   environment says 0 and the others 0.9, all are 0; if it says True, 0.9 and -0.9 are True, too. Nothing is said, and the mask `_score` is
#   true for all. An int is easily there: a sum that begins with 0, or a share that is written 0 or 1 at its ends. What is lost then depends
#   on the order and on the step. It is the same in `final_info`, which holds the results of episodes, with arrays as values, and with
#   AsyncVectorEnv. If a float comes first all is right. The answer to it is a float() around each number of an info.
# Version: gymnasium 1.4.0, numpy 2.4.6
# Source: https://pypi.org/project/gymnasium/1.4.0/, gymnasium/vector/vector_env.py, VectorEnv._add_info
# Date: 2026-12-01
# Seen:
#     said [0.9, 0.9, 0, -0.9]      told [0.9, 0.9, 0.0, -0.9]
#     said [0, 0.9, 0.9, -0.9]      told [0, 0, 0, 0]
#     said [True, 0.9, 0, -0.9]     told [True, True, False, True]
#     said [[0, 1], [0.9, 0.1]]     told [[0, 1], [0, 0]]

set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check gymnasium==1.4.0 numpy==2.4.6
cat > "$folder/infos.py" <<'PYTHON'
import gymnasium
import numpy
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv


class Scored(gymnasium.Env):
    """An episode is one step, and its info says the score."""

    observation_space = gymnasium.spaces.Box(0, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, score):
        self.score = score

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return numpy.zeros(1, numpy.float32), {}

    def step(self, action):
        return numpy.zeros(1, numpy.float32), 0.0, True, False, {"score": self.score}


def told(kind, mode, scores):
    vector = kind([lambda score=score: Scored(score) for score in scores], autoreset_mode=mode)
    vector.reset(seed=0)
    infos = vector.step(numpy.zeros(len(scores), int))[4]
    vector.close()
    infos = infos["final_info"] if mode == AutoresetMode.SAME_STEP else infos
    assert infos["_score"].all()
    return infos["score"].tolist()


if __name__ == "__main__":
    print("gymnasium", gymnasium.__version__)
    changed = False
    array = numpy.array
    for scores, seen in (([0.9, 0.9, 0, -0.9], [0.9, 0.9, 0.0, -0.9]), ([0, 0.9, 0.9, -0.9], [0, 0, 0, 0]),
                         ([True, 0.9, 0, -0.9], [True, True, False, True]),
                         ([array([0, 1]), array([0.9, 0.1])], [[0, 1], [0, 0]])):
        all_told = [told(kind, mode, scores) for kind in (SyncVectorEnv, AsyncVectorEnv)
                    for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)]
        print(f"said {str([s.tolist() if isinstance(s, numpy.ndarray) else s for s in scores]):<24} told {all_told[0]}")
        changed |= any(each != seen for each in all_told)
    raise SystemExit(changed)
PYTHON
"$folder/venv/bin/python" -W ignore "$folder/infos.py"
