"""When a run writes checkpoints, what it says of steps that are in none, when its policy is evaluated, and which is the
best so far."""

from __future__ import annotations

import logging
import math
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer import checkpoint
from trainer.callbacks import Callbacks, TrainingLog
from trainer.checkpoints import owner
from trainer.checkpoints.files import plain_rng
from trainer.config import TrainConfig
from trainer.evaluation import Evaluator, measure
from trainer.experience import Experience
from trainer.learner import Learner
from trainer.ranks.ranks import Ranks

if TYPE_CHECKING:
    from trainer.faults.stopping import Stop

_log = logging.getLogger(__name__)


class Saver:
    """Writes the checkpoints of a run, on the first rank; without a `run_dir`, as on the others, it writes nothing."""

    def __init__(self, config: TrainConfig, ranks: Ranks, learner: Learner, experience: Experience, log: TrainingLog,
                 callbacks: Callbacks, run_dir: Path | None, meta: dict[str, Any], newest: Path | None = None,
                 own: owner.Hold | None = None):
        """`newest`: the checkpoint that the run goes on from. own: that `run_dir` is this process's own."""
        self.own = own
        self.config, self.ranks, self.learner, self.experience, self.log = config, ranks, learner, experience, log
        self.callbacks, self.run_dir, self.meta, self.newest = callbacks, run_dir, meta, newest
        self._is_told = False  # that the directory is gone and cannot be made anew
        self._saved_at = time.perf_counter()
        self._saved_steps = -1  # of the checkpoint that this run wrote last
        self._on_disk_steps = learner.steps  # of the newest checkpoint
        self._kept_steps = learner.steps  # of the newest one that stays for good
        self._tried_steps = learner.steps  # when it was last tried to write one

    @property
    def unsaved_steps(self) -> int:
        """Steps that were learned from and are in no checkpoint; 0 where there are no checkpoints."""
        return self.learner.steps - self._on_disk_steps if self.run_dir else 0

    def is_due(self) -> bool:
        waited_s = time.perf_counter() - self._saved_at
        return waited_s >= self.config.checkpoint_every_s or self._stays_since(self._tried_steps)

    def look(self) -> None:
        """Notice that somebody has removed or renamed the run's directory, its lock or its newest checkpoint: say so,
        make the directory anew, and let a checkpoint be due. If another process has taken the directory, save beside it
        and end."""
        if self.run_dir is None:
            return
        gone, problem = [], None
        if self.own and self.own.is_lost():
            gone.append(str(self.run_dir / owner.FILE if self.run_dir.is_dir() else self.run_dir))
            try:
                self.own.take_again()
            except owner.InUse as error:
                self._leave_to_another(error)
            except OSError as error:
                problem = error.strerror
        if self.newest and not self.newest.is_file():
            gone.append(f"the newest checkpoint, {self.newest}")
            self._saved_at, self._saved_steps, self._on_disk_steps, self.newest = -math.inf, -1, 0, None
        if gone and not (problem and self._is_told):
            then = (f"nothing can be written there now ({problem})" if problem else "a new checkpoint is written"
                    if self.newest is None and self.learner.updates else "what is needed is written anew")
            _log.warning("%s: removed or renamed by somebody while the run goes on; %s.", " and ".join(gone), then)
        self._is_told = problem is not None

    def _leave_to_another(self, error: owner.InUse) -> None:
        self.callbacks.stop.ask(f"the loss of {self.run_dir}")
        self.run_dir, self.own = self.run_dir.with_name(f"{self.run_dir.name}-{os.getpid()}"), None
        _log.warning("%s, where this run was: it ends, and saves to %s.", error, self.run_dir)

    def _stays_since(self, step: int) -> bool:
        """Whether a checkpoint that stays for good has become due since `step`."""
        every = self.config.keep_every
        return every is not None and self.learner.steps // every > step // every

    def save(self) -> None:
        """Write a checkpoint with the parts of all ranks. A full disk is a warning, and the run tries again later."""
        own = {"numpy_rng": plain_rng(self.learner.rng)}
        if self.config.deterministic:
            own |= self.experience.content()
        if self._write(self.ranks.gather(own)):
            self.callbacks.at_save(self.newest, self.log.newest)

    def _write(self, of_ranks: list[dict[str, Any]]) -> bool:
        """Whether there is a new checkpoint."""
        self.look()
        self._saved_at, self._tried_steps = time.perf_counter(), self.learner.steps
        if self.run_dir is None or self.learner.steps == self._saved_steps:
            return False
        content = self.learner.content(self.meta) | {"ranks": of_ranks, "window": list(self.log.episodes)}
        try:
            self.newest = checkpoint.save(self.run_dir / "checkpoints", self.learner.steps, content)
        except OSError as error:
            before = f"the one of step {self._on_disk_steps:,} is intact" if self.newest else "there is none yet"
            _log.warning("checkpoint of step %d not written (%s); %s.", self.learner.steps, error, before)
            return False
        self._saved_steps = self._on_disk_steps = self.learner.steps
        if self._stays_since(self._kept_steps):
            self._keep(content)
        return True

    def _keep(self, content: dict[str, Any]) -> None:
        """Write the checkpoint that stays for good; where the disk is full, the next one is tried."""
        steps = self.learner.steps
        file = self.run_dir / "checkpoints" / f"{checkpoint.KEPT}{steps:012d}.pt"
        try:
            checkpoint.write(file, content | {"step": steps})
            self._kept_steps = steps
        except OSError as error:
            _log.warning("checkpoint of step %d is not kept for good (%s).", steps, error)

    def tell_lost(self, lost: int) -> None:
        """Say how many steps that this rank collected nobody will learn from."""
        if lost > 0 and self.ranks.rank == 0:
            _log.warning("%d steps collected since update %d (step %d of the run) were not learned from and are lost.",
                         lost, self.learner.updates, self.learner.steps)

    def save_quietly(self, lost: int) -> None:
        """Save what was learned before a failure ends the run, and say how many steps of this rank were `lost`.

        A deterministic run saves nothing now: it goes on from the last checkpoint that knows of the environments."""
        self.tell_lost(lost)
        try:
            if self.learner.updates and not self.config.deterministic:
                self._write([])
        except Exception:  # the failure that brought us here matters more
            pass
        if self.unsaved_steps:
            since = f"since the checkpoint of step {self._on_disk_steps}" if self.newest else "are in no checkpoint and"
            exact = self.config.deterministic and self.newest
            why = ": a deterministic run goes on exactly from there" if exact else ""
            _log.warning("%d steps learned from %s are lost%s.", self.unsaved_steps, since, why)


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
