"""What a rank is told when it is itself the one that ends first."""

import threading

from torch.distributed import HashStore

from tests.waiting import until
from trainer.ranks.rank_watch import Watch


def test_who_leaves_early_ends_for_its_own_reason_however_fast_the_others_answer():
    store, hubs = HashStore(), []
    thread = threading.Thread(target=lambda: hubs.append(Watch(0, 2, "127.0.0.1", store)))
    thread.start()
    watch = Watch(1, 2, "127.0.0.1", store)
    thread.join()
    tell = watch._tell

    def slowly(message):
        tell(message)
        until(lambda: hubs[0].verdict, "the first rank to answer")

    watch._tell = slowly
    watch.leave_early("rank 1 was stopped by SIGTERM")
    stop = KeyboardInterrupt()
    assert watch.explain(stop, ours=False) is stop
    assert hubs[0].verdict == "rank 1 was stopped by SIGTERM"
    for one in (watch, hubs[0]):
        one.leave()
