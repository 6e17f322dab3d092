"""How a training run ends, however it ends: what was learned is on disk, and what is lost is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trainer.errors import Cancelled, NonFinite
from trainer.faults.nan_dump import write_dump
from trainer.networks import name_of
from trainer.policy import Policy

if TYPE_CHECKING:
    from trainer.loop import Run


@contextmanager
def orderly_end(run: Run) -> Iterator[None]:
    """Around the loop: a stop that came too late for the rollout ends it here, a failure leaves a checkpoint and a
    dump."""
    try:
        try:
            yield
        except Cancelled:
            if not run.stop.asked or run.ranks.size > 1:
                raise  # another rank has died
            run.stop.agreed = run.stop.asked
            if not run.config.deterministic:  # whose checkpoints are of between two rollouts
                run.saver.save()
            _give_up_what_is_not_learned(run)
        else:
            if run.stop.agreed and not run.config.deterministic:  # whose checkpoint holds what was collected meanwhile
                _give_up_what_is_not_learned(run)
    except NonFinite as error:
        run.saver.save_quietly(_not_learned(run))
        raise _with_dump(error, run) from error
    except BaseException as error:
        run.saver.save_quietly(_not_learned(run))
        if not run.stop.asked or not run.ranks.may_be_ended_by_others(error):
            raise
        run.stop.agreed = run.stop.asked  # one rank had no time left for its rollout; the others cannot go on alone
        run.ranks.leave_early(f"rank {run.ranks.rank} was stopped by {run.stop.asked}")


def _give_up_what_is_not_learned(run: Run) -> None:
    run.experience.close()
    run.saver.tell_lost(_not_learned(run))


def _not_learned(run: Run) -> int:
    """Steps that this rank has collected and not learned from."""
    return run.rollout.total - run.learner.own_steps


def _with_dump(error: NonFinite, run: Run) -> NonFinite:
    """The error, with the name of the file that reproduces it; of its own kind."""
    learner = run.learner
    if run.run_dir is None or learner.batch is None or learner.clones:  # a dump is of an update of PPO
        return type(error)(f"{error}; the learner is as it was after update {learner.updates}.")
    try:
        path = write_dump(run.run_dir, learner, run.rollout, error)
    except (OSError, RuntimeError) as problem:
        return type(error)(f"{error}; a dump of it could not be written ({problem}).")
    again = f"python -m trainer.faults.nan_dump {path}"
    if learner.make_policy is not Policy:
        again = (f"trainer.faults.nan_dump.reproduce({str(path)!r}, make_policy) with the make_policy "
                 f"{name_of(learner.make_policy)}")
    return type(error)(f"{error} in update {learner.updates + 1}; {again} repeats it.")
