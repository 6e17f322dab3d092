"""One evaluation by several tasks of SLURM or torchrun: each takes the next chunk, and all get all results."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from eval.processes import share_out
from rearrange.home.errors import UserError
from trainer.faults import signals
from trainer.ranks.launch import this_rank

INTERRUPT_AFTER_S = 0.2  # once a task is known to have died


def together() -> bool:
    """Whether a launcher started several tasks of this command."""
    return this_rank().size > 1


def refuse_together(setting: str) -> None:
    """UserError for what one process does alone."""
    if together():
        raise UserError(f"{setting} is for one process, and this is one of {this_rank().size} tasks: start it without "
                        "srun or torchrun.")


def run_shared(work: Callable[[Any, Any], Iterable[Any]], job: Any, chunks: Sequence[Any], workers: int | None,
               take: Callable[[Any], None], progress: Callable[[int, int], None] | None) -> list[Any]:
    """The results of all chunks, on every task. The first task's job is everyone's.

    Args:
        work, job, chunks, workers: as of `eval.processes.share_out`.
        take: gets the results of this task.
        progress: is told the numbers of all tasks, on the first.

    Raises:
        RankError: another task died or failed.
    """
    from trainer.ranks.ranks import join

    own: list[Any] = []
    told = (0, 0)
    with join("cpu") as ranks:
        job = ranks.from_first(job)

        def count(result: Any) -> None:
            nonlocal told
            own.append(result)
            take(result)
            told = ranks.store.add("done", 1), ranks.store.add("successes", int(result.success))
            if progress and ranks.rank == 0:
                progress(*told)

        workers = workers or max(1, (os.cpu_count() or 1) // ranks.local_size)
        with _ended_with_the_others(ranks):
            share_out(work, job, _claimed(chunks, ranks.store), workers, count)
        results = [result for of_task in ranks.gather(own) for result in of_task]
        if progress and ranks.rank == 0 and told[0] < len(results):
            progress(len(results), sum(result.success for result in results))
    return results


def _claimed(chunks: Sequence[Any], store: Any) -> Iterator[Any]:
    """Chunks that no other task has taken."""
    while (number := store.add("chunks", 1)) <= len(chunks):
        yield chunks[number - 1]


@contextmanager
def _ended_with_the_others(ranks: Any) -> Iterator[None]:
    """Let the death of another task interrupt this one meanwhile, as Ctrl-C does."""
    import _thread

    over = threading.Event()

    def interrupt() -> None:
        if not over.wait(INTERRUPT_AFTER_S):
            _thread.interrupt_main()

    ranks.on_death(lambda: threading.Thread(target=interrupt, daemon=True).start())
    try:
        with signals.not_lost():
            yield
    except KeyboardInterrupt as stop:
        ranks.leave_early(f"rank {ranks.rank} was stopped{f' by {stop.args[0]}' if stop.args else ''}")
        raise
    finally:
        over.set()
