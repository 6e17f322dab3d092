"""Newer weights take the place of older ones between two batches, never within one."""

from concurrent.futures import ThreadPoolExecutor

import torch

from trainer.acting import Weights

WORKERS, UPDATES = 3, 200


def plain(value: float) -> torch.nn.Linear:
    """A layer whose weights are all the same."""
    layer = torch.nn.Linear(32, 32).requires_grad_(False)
    for parameter in layer.parameters():
        parameter.fill_(value)
    return layer


def test_a_batch_is_answered_with_one_version_and_the_next_with_the_newest():
    acting, weights, newest = plain(0.0), Weights(WORKERS), [0]

    def act(worker: int) -> list[int]:
        seen = [0]
        while seen[-1] < UPDATES:
            least = newest[0]
            with weights.act(worker, acting) as version:
                assert version >= max(seen[-1], least), "what was offered before the batch acts in it"
                for _ in range(3):
                    assert all((parameter == version).all() for parameter in acting.parameters())
            seen.append(version)
        return seen

    with ThreadPoolExecutor(WORKERS) as pool:
        workers = [pool.submit(act, worker) for worker in range(WORKERS)]
        for version in range(1, UPDATES + 1):
            learner = plain(version)
            weights.offer(learner, version)
            newest[0] = version
            learner.weight.fill_(-1.0)  # which goes on learning
        assert all(worker.result()[-1] == UPDATES for worker in workers)
