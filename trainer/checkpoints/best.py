"""When the policy of a run is evaluated, which checkpoint is the best so far, and when that is good enough."""

from __future__ import annotations

import logging
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer import checkpoint
from trainer.config import TrainConfig
from trainer.evaluation import Evaluator, measure

if TYPE_CHECKING:
    from trainer.faults.stopping import Stop
    from trainer.learner import Learner
    from trainer.logs.training_log import TrainingLog

_log = logging.getLogger(__name__)


class Evaluations:
    """Of a run, on its first rank; `evaluator` None: there are none."""

    def __init__(self, config: TrainConfig, evaluator: Evaluator | None, learner: Learner, log: TrainingLog, stop: Stop,
                 run_dir: Path | None, meta: dict[str, Any]):
        self.config, self.evaluator, self.learner, self.log, self.stop = config, evaluator, learner, log, stop
        self.folder, self.meta = run_dir and run_dir / "checkpoints", meta
        self.measure, self.best = _of_file(self.folder)  # its name; the best value, and its step
        self.reached = False  # what `stop_at` asks for
        self._asked = learner.steps // config.eval_every if config.eval_every else 0  # evaluations that were due

    def after_update(self) -> None:
        """Take in what is known by now; ask for the next when it is due and nobody is under way."""
        if not self.evaluator or self.evaluator.is_over:
            return
        self._take_in(self.evaluator.answer())
        due = self.learner.steps // self.config.eval_every
        if due > self._asked and not self.evaluator.is_busy and not self.evaluator.is_over:
            self._asked = due
            self._ask()

    def finish(self) -> None:
        """At the end of a complete run: wait for the evaluation under way, and for one of the last policy."""
        if not self.evaluator or self.learner.steps < self.config.steps:
            return
        self._wait()
        if not (self.evaluator.is_over or self.stop.asked):
            self._ask()
            self._wait()

    def _wait(self) -> None:
        """Until the evaluation under way is over, or somebody asks to stop."""
        while self.evaluator.is_busy and not self.stop.asked:
            self._take_in(self.evaluator.answer())
            time.sleep(0.01)

    def _ask(self) -> None:
        content = self.learner.policy_content(self.meta)
        content["policy"] = {k: v.clone() for k, v in content["policy"].items()}  # the learner's go on changing
        self.evaluator.ask(content)

    def _take_in(self, answer: tuple[dict[str, Any], dict[str, float], bytes | None] | None) -> None:
        if answer is None:
            return
        content, reached, self.log.film = answer
        name, value = measure(reached)
        self.log.evaluated = {f"eval/{k}": v for k, v in reached.items()} | {"eval/at_step": float(content["step"])}
        if name != "success" and self.measure == "success":
            return  # none of its episodes has told a success: nothing to compare
        if name != self.measure:
            self.measure, self.best = name, None
        is_kept = self.folder is None or (self.folder / checkpoint.BEST).is_file()  # nobody has removed it
        if self.best is None or value > self.best[0] or not is_kept:
            self.best = value, content["step"]
            self._keep(content | {"evaluation": {"measure": name, "value": value}})
        if self.config.stop_at is not None and value >= self.config.stop_at:
            self.reached = True
            self.stop.ask(f"{name} {value:.3g} in an evaluation")

    def _keep(self, content: dict[str, Any]) -> None:
        if self.folder is None:
            return
        try:
            checkpoint.write(self.folder / checkpoint.BEST, content)
        except OSError as error:
            _log.warning("the best checkpoint, of step %d, is not written (%s).", content["step"], error)


def _of_file(folder: Path | None) -> tuple[str | None, tuple[float, int] | None]:
    """Measure and best of the part of a run that is continued; a value that is no number is none."""
    if folder is None or not (folder / checkpoint.BEST).is_file():
        return None, None
    try:
        content = checkpoint.load_checkpoint(folder / checkpoint.BEST)
        name, value = str(content["evaluation"]["measure"]), float(content["evaluation"]["value"])
        return (name, (value, content["step"])) if math.isfinite(value) else (None, None)
    except checkpoint.CheckpointError as error:
        _log.warning("%s The next evaluation takes its place.", error)
    except (KeyError, TypeError, ValueError):  # it tells no value
        pass
    return None, None
