"""How a run is asked to stop before its end, by a signal or a callback, and how it ends, however it ends: what was
learned is on disk, and what is lost is told."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainer.errors import Cancelled, NonFinite
from trainer.faults.nan_dump import write_dump
from trainer.faults.signals import came, heard, raise_again, signal_name
from trainer.networks import name_of
from trainer.policy import Policy

if TYPE_CHECKING:
    from trainer.learner import RankReport
    from trainer.loop import Run

@dataclass
class Stop:
    """Why the run is to stop. A rank asks, all ranks agree; alone, to ask is enough."""

    asked: str | None = None  # on this rank: the first reason counts
    agreed: str | None = None  # by all ranks: the run ends before its next rollout

    def ask(self, reason: str) -> None:
        self.asked = self.asked or reason

    def agree(self, everyone: Sequence[RankReport]) -> None:
        """What one rank asks for after it has sent its report is heard with its next one."""
        asked = (self.asked,) if len(everyone) == 1 else (report.stop for report in everyone)
        self.agreed = next((reason for reason in asked if reason), None)


@contextmanager
def stop_on_signal(late: Callable[[], None], within_s: float) -> Iterator[Stop]:
    """Turn the first signal that is heard into a request to stop after the update; the second acts at once. `late` is
    called when the update is still not there after `within_s`."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    previous: dict[signal.Signals, Any] = {}
    asked: queue.SimpleQueue[None] = queue.SimpleQueue()  # a handler may be interrupted: it can use this, but no thread
    over = threading.Event()

    def limit() -> None:
        asked.get()
        if not over.wait(within_s):
            late()

    def request(signum: int, frame: Any) -> None:
        stop.ask(signal_name(signum))
        asked.put(None)
        for s, handler in previous.items():
            signal.signal(s, signal.default_int_handler if s == signal.SIGINT else handler)

    watch = threading.Thread(target=limit, name="limit of a stop", daemon=True)
    watch.start()
    for s in heard():
        previous[s] = signal.signal(s, request)
    try:
        raise_again()
        yield stop
    except KeyboardInterrupt:
        came.clear()  # it is not lost
        raise
    finally:
        over.set()
        asked.put(None)
        for s, handler in previous.items():
            signal.signal(s, handler)
        watch.join()  # a run leaves no thread behind


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
