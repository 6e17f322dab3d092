"""Several processes that learn one policy: each collects and learns, gradients are averaged, rank 0 writes.

Every rank makes the same gradient steps from the same averaged gradients, so parameters stay identical on all of them
without ever being sent. Alone, nothing here does anything.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import Any, Callable, Iterator, TypeVar

import torch.distributed as dist
from torch import Tensor, nn

from trainer.config import TrainConfig
from trainer.errors import Cancelled, NonFinite, RankError, WorkerError
from trainer.faults.signals import raise_again
from trainer.ranks.launch import RankInfo, this_rank
from trainer.ranks.preemption import Preemption
from trainer.ranks.rank_watch import Watch
from trainer.ranks.store import meet, shared_store

START_TIMEOUT = timedelta(minutes=5)
COLLECTIVE_TIMEOUT = timedelta(minutes=20)  # for a rank that lives but does not come; one that dies is noticed at once
Value = TypeVar("Value")
_store: Any = None  # stays open while the process lives


class Ranks:
    """This process among all. `store` counts things across ranks (torch.distributed.Store); None when alone."""

    def __init__(self, here: RankInfo, store: Any = None, watch: Watch | None = None):
        self.rank, self.size, self.local_rank, self.local_size = here.rank, here.size, here.local_rank, here.local_size
        self.store, self.watch = store, watch
        self.joined = store is not None
        # Plain values travel by gloo, whatever the gradients use: NCCL would take them through the device.
        self._plain = dist.new_group(backend="gloo") if self.joined and dist.get_backend() != "gloo" else None
        self._evaluators: list[nn.parallel.DistributedDataParallel] = []

    def on_death(self, act: Callable[[], None]) -> None:
        """Call `act`, from another thread, when a rank has died."""
        if self.watch:
            self.watch.on_death = act
            if self.watch.verdict:
                act()

    def leave_early(self, why: str) -> None:
        """This rank ends before the others; they are told why, and end too."""
        if self.watch:
            self.watch.leave_early(why)

    def may_be_ended_by_others(self, error: BaseException) -> bool:
        """Whether what was raised here may come from another rank's end, or from being cancelled."""
        return self.size > 1 and not isinstance(error, KeyboardInterrupt) and _from_a_collective(error)

    def preemption(self, config: TrainConfig) -> Preemption | None:
        """How rollouts of several ranks are ended early; None for one rank, or if they are not."""
        c = config.collect
        if self.size == 1 or c.preempted_by == "none" or config.deterministic:
            return None
        return Preemption(c.preempted_by, config.steps_per_rollout, c.preemption_fraction, c.preemption_min_share,
                          self.size, self.store, c.overlap, config.ppo.mini_batches)

    def gather(self, value: Value) -> list[Value]:
        """Everyone's `value`, in the order of ranks, on every rank."""
        if not self.joined:
            return [value]
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value, group=self._plain)
        return values

    def from_first(self, value: Value) -> Value:
        """Rank 0's `value` on every rank."""
        if not self.joined:
            return value
        held = [value]
        dist.broadcast_object_list(held, 0, group=self._plain)
        return held[0]

    def evaluator(self, policy: nn.Module) -> Callable[..., Any]:
        """`policy.evaluate`, whose gradients will be averaged over ranks by DistributedDataParallel."""
        if not self.joined:
            return policy
        # Of a convolution over one channel, on a GPU: how that dimension is laid out costs nothing.
        warnings.filterwarnings("ignore", "Grad strides do not match bucket view strides")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # newer torch has another word for broadcast_buffers
            # Buffers are equal on all ranks.
            self._evaluators.append(nn.parallel.DistributedDataParallel(policy, broadcast_buffers=False))
        return self._evaluators[-1]

    def stop_averaging(self) -> None:
        """Before the process group ends: let go of it everywhere but there.

        The last to hold it waits for gloo's thread, which may need the interpreter for the tensors of the last
        collective; a reducer of DistributedDataParallel (torch 2.13) waits without letting go of the interpreter, and
        both for ever.
        """
        for evaluator in self._evaluators:
            evaluator.reducer = evaluator.logger = evaluator.process_group = None

    def total(self, number: int) -> int:
        """The sum of everyone's."""
        return sum(self.gather(number))

    def sum_(self, tensor: Tensor) -> Tensor:
        """Replace a tensor by its sum over ranks."""
        if self.size > 1:
            dist.all_reduce(tensor)
        return tensor

    def average_(self, tensor: Tensor | None) -> Tensor | None:
        """Replace a tensor by its mean over ranks; on the device that the process group works on."""
        if self.size > 1 and tensor is not None:
            dist.all_reduce(tensor)
            tensor /= self.size
        return tensor


@contextmanager
def join(device: str) -> Iterator[Ranks]:
    """The ranks that torchrun or SLURM started, for the duration of a run; or this process alone.

    An error that another rank's end caused is replaced by RankError, which names that rank.
    """
    here = this_rank()
    if not here.launched:
        yield Ranks(here)
        return
    # DistributedDataParallel imports it, and modules that are imported while there is a process group may keep it for
    # ever.
    import torch._dynamo  # noqa: F401

    try:
        store = _meet(here)
    except RankError as error:  # each tells it itself, since they have not met
        if here.rank == 0:
            raise
        print(error, file=sys.stderr, flush=True)
        raise RankError(str(error), told_elsewhere=True) from error
    gpu = None
    if device != "cpu" and torch.cuda.is_available():
        torch.cuda.set_device(here.local_rank % torch.cuda.device_count())
        gpu = str(torch.cuda.get_device_properties().uuid)
    dist.init_process_group(_backend(store, here, gpu), store=dist.PrefixStore("group", store), rank=here.rank,
                            world_size=here.size, timeout=COLLECTIVE_TIMEOUT)
    watch = Watch(here.rank, here.size, here.address, store) if here.size > 1 else None
    ranks = None
    try:
        ranks = Ranks(here, store, watch)
        yield ranks
    except BaseException as error:
        if _from_a_collective(error) and not isinstance(error, KeyboardInterrupt) and not (watch and watch.verdict):
            raise_again()  # all ranks were stopped, and another one's end came before this one's signal was heard
        explained = watch.explain(error, ours=not _from_a_collective(error)) if watch else error
        if explained is error:
            raise
        raise explained from error
    finally:
        if ranks:
            ranks.stop_averaging()
        if watch:
            watch.leave()
        if not (watch and watch.verdict):  # with a rank gone, an orderly end would wait for it
            dist.destroy_process_group()


def _backend(store: Any, here: RankInfo, gpu: str | None) -> str:
    """NCCL where each rank has a GPU of its own, called `gpu`; else gloo, since NCCL refuses ranks that share one."""
    store.set(f"gpu/{here.rank}", gpu or "")
    every = {store.get(f"gpu/{rank}") for rank in range(here.size)}
    return "nccl" if len(every) == here.size and b"" not in every else "gloo"


def _meet(here: RankInfo) -> Any:
    """The store that all ranks share; a part of it for this meeting of these processes alone."""
    global _store
    timeout_s = START_TIMEOUT.total_seconds()
    with nullcontext(_store) if _store else shared_store(here, timeout_s) as store:
        _store = store
        return dist.PrefixStore(meet(_store, here.rank, here.size, timeout_s), _store)


def _from_a_collective(error: BaseException) -> bool:
    """Whether another rank's end may be the cause: what gloo, NCCL and the store raise, and being told to stop."""
    ours = isinstance(error, (WorkerError, NonFinite))
    return isinstance(error, (RuntimeError, Cancelled, KeyboardInterrupt)) and not ours
